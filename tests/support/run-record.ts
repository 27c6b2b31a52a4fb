import { isLaid, scopeTables } from '../../src/engine/storage/scope-tables.ts'
import type { LogEntry } from '../../src/contract/log-entry.ts'
import type { ProposalResult } from '../../src/skills/session/result.ts'
import type { Life } from './crash-at-write.ts'
import { inObject, logOf, stubOf, until } from './scopes.ts'
import { effects } from './test-agents.ts'

/** All that is left of one run of a skill in a scope. */
export type RunLife = { scope: string; life: Life; results: ProposalResult[]; log: LogEntry[] }

/** Repeated while the object is dying. One that died before its first write has no tables yet. */
export const rowsOf = <Row extends Record<string, SqlStorageValue>>(scope: string, query: string): Promise<Row[]> =>
  until(
    () =>
      inObject(stubOf(scope), ({ storage }) => (isLaid(scopeTables(storage)) ? storage.sql.exec<Row>(query).toArray() : [])).catch(
        () => null,
      ),
    `${scope} can be read`,
  )

/** Once every run in the scope has ended. */
export async function recordOf(scope: string, life: Life): Promise<RunLife> {
  const query = 'SELECT ended_at, result FROM skill_runs ORDER BY started_at'
  const ended = await until(async () => {
    const runs = await rowsOf<{ ended_at: number | null; result: string | null }>(scope, query)
    return runs.length > 0 && runs.every(({ ended_at }) => ended_at !== null) ? runs : null
  }, 'the runs have ended')
  life.over = true
  const results = ended.map(({ result }) => JSON.parse(result ?? 'null') as ProposalResult)
  return { scope, life, results, log: await until(() => logOf(stubOf(scope)).catch(() => null), `the log of ${scope} can be read`) }
}

/** The parts of a run that a death must not change. Without a key, a lost step is unknown. */
export function faultsOf(ran: RunLife, { calm, keyed }: { calm: RunLife; keyed: boolean }): string[] {
  const unknown = ran.life.lost.length > 0 && !keyed
  const expected = unknown ? unknownEnd(calm) : endOf(calm)
  const end = unknown
    ? { ...endOf(ran), kinds: pick(endOf(ran).kinds, Object.keys(unknownEnd(calm).kinds)), result: statusOf(ran) }
    : endOf(ran)
  return [
    ...(ran.life.died ? [] : ['it did not die']),
    ...(JSON.stringify(end) === JSON.stringify(expected)
      ? []
      : [`it ended as ${JSON.stringify(end)} instead of ${JSON.stringify(expected)}`]),
    ...unbalanced(ran),
    ...(keyed ? keyless(ran) : repeated(ran, calm)),
    ...leftDone(ran),
  ]
}

/** Told once each, of a run, its steps and whatever asked for it. */
const ENDS = [
  'skill-applied',
  'skill-step-ended',
  'skill-compensation-ended',
  'approval-requested',
  'approval-decided',
  'action-ended',
  'event-ended',
]
const ENDS_OF_UNKNOWN = ['skill-applied', 'approval-requested', 'approval-decided', 'action-ended', 'event-ended']

const countsOf = ({ log }: RunLife, kinds: readonly string[]): Record<string, number> =>
  Object.fromEntries(kinds.map((kind) => [kind, log.filter((entry) => entry.kind === kind).length]))
const pick = (counts: Record<string, number>, kinds: readonly string[]) => Object.fromEntries(kinds.map((kind) => [kind, counts[kind]]))
const changesIn = ({ log }: RunLife) => log.flatMap((entry) => (entry.kind === 'blackboard-changed' ? [entry['changes']] : []))
const statusOf = ({ results }: RunLife) => results.map(({ status, outputs }) => ({ status, outputs }))

function endOf(run: RunLife) {
  const result: unknown = run.results.map(({ status, reason, outputs, steps, compensation }) => ({
    status,
    reason,
    outputs,
    steps: steps.map((step) => step.status),
    compensation: compensation.map(({ undoes, status: undone }) => `${undoes} ${undone}`),
  }))
  return { kinds: countsOf(run, ENDS), changes: changesIn(run), result }
}

function unknownEnd(calm: RunLife) {
  return { kinds: countsOf(calm, ENDS_OF_UNKNOWN), changes: [], result: [{ status: 'unknown', outputs: {} }] }
}

/** Effects whose beginnings and ends in the log are not as many. */
function unbalanced({ log }: RunLife): string[] {
  const open = new Map<string, number>()
  for (const entry of log) {
    if (entry.kind === 'effect-started') open.set(entry.effect_id, (open.get(entry.effect_id) ?? 0) + 1)
    if (entry.kind === 'effect-ended' && entry.status !== 'reused') open.set(entry.effect_id, (open.get(entry.effect_id) ?? 0) - 1)
  }
  return [...open].filter(([, count]) => count !== 0).map(([id, count]) => `effect ${id} began ${count} times more than it ended`)
}

const timesOf = (scope: string): Map<string, number> => {
  const times = new Map<string, number>()
  for (const effect of effects) if (effect.scope === scope) times.set(effect.text, (times.get(effect.text) ?? 0) + 1)
  return times
}

/** Without a key nothing happens more often than in an undisturbed run, with one undo each. */
function repeated({ scope }: RunLife, calm: RunLife): string[] {
  const calmly = timesOf(calm.scope)
  return [...timesOf(scope)]
    .filter(([text, times]) => times > Math.max(calmly.get(text) ?? 0, text.startsWith('undo') ? 1 : 0))
    .map(([text, times]) => `${text} happened ${times} times`)
}

/** With a key, repetitions use the same key: one key per step. */
function keyless({ scope }: RunLife): string[] {
  const own = effects.filter((effect) => effect.scope === scope)
  return [...timesOf(scope).keys()].flatMap((text) => {
    const keys = new Set(own.filter((effect) => effect.text === text).map(({ key }) => key?.split(':').at(-1) ?? null))
    const runs = new Set(own.map(({ key }) => key?.split(':').slice(0, -1).join(':')))
    return keys.has(null) || runs.size > 1 || keys.size > (text === 'throw' ? 2 : 1)
      ? [`${text} happened under ${[...keys].join(', ')}`]
      : []
  })
}

/** Steps of a failed run that are neither undone nor reported as impossible to undo. */
function leftDone({ scope, results }: RunLife): string[] {
  const undone = timesOf(scope)
  return results.flatMap(({ status, compensation }) =>
    status === 'ok'
      ? []
      : compensation
          .filter((entry) => entry.status === 'ok' && !undone.has(`undo ${entry.undoes}`))
          .map(({ undoes }) => `step ${undoes} is said to be undone, and is not`),
  )
}
