import { isJsonFields, type Json, type JsonFields } from '../../../base/json.ts'
import type { EpisodePlace } from '../episode.ts'
import type { Trace } from '../skills/trace.ts'
import { DONE, fieldsOf, skillRun, textIn, toolAct, type SkillFields } from './decided.ts'
import type { Skipped } from './reader.ts'

type StandaloneEntry = { seq: number; at: string; kind: string; trace_id: string } & JsonFields
/** The log of a process without scopes, such as the library's file. */
export type StandaloneLog = { entries(query: { after: number; limit: number }): readonly StandaloneEntry[] }

type Turn = {
  first: number
  last: number
  said: string | null
  blackboard: JsonFields | null
  acts: Trace['acts'][number][]
  proposed: Map<string, unknown>
  runs: Map<string, unknown>
  usage: Trace['usage']
}

const PAGE = 1000

/**
 * The turns of a process without scopes: entries of one trace are one turn. It has no events, so no
 * reflex can be learned from it. At most `most` turns, the latest, are kept in memory.
 */
export function readStandalone(
  log: StandaloneLog,
  { place, labels, most }: { place: EpisodePlace; labels: readonly string[]; most: number },
): { traces: Trace[]; skipped: Skipped[] } {
  const turns = new Map<string, Turn>()
  for (let after = 0; ;) {
    const page = log.entries({ after, limit: PAGE })
    const last = page.at(-1)
    if (!last) break
    after = last.seq
    for (const entry of page) {
      if (entry.kind === 'part') continue
      const turn = turns.get(entry.trace_id) ?? begun(entry)
      // The latest entry decides on which turns are the latest.
      turns.delete(entry.trace_id)
      turns.set(entry.trace_id, turn)
      note(turn, entry)
      const [oldest] = turns.keys()
      if (turns.size > most && oldest !== undefined) turns.delete(oldest)
    }
  }
  const apart = Array.from(turns.values()).filter(({ said }) => said === null).length
  return {
    traces: Array.from(turns).flatMap(([trace_id, turn]) => (turn.said === null ? [] : [traceOf(trace_id, turn, { place, labels })])),
    skipped: apart === 0 ? [] : [{ reason: 'its calls were made apart from a turn of a wrapped model', count: apart }],
  }
}

const begun = ({ at }: StandaloneEntry): Turn => ({
  first: Date.parse(at),
  last: 0,
  said: null,
  blackboard: null,
  acts: [],
  proposed: new Map(),
  runs: new Map(),
  usage: { model_calls: 0, tokens: 0, cost_usd: 0, duration_ms: 0 },
})

function note(turn: Turn, entry: StandaloneEntry): void {
  turn.last = Date.parse(entry.at)
  switch (entry.kind) {
    case 'turn-asked':
      turn.said ??= textIn(entry, 'text')
      break
    case 'model-called':
      // Logs of older versions have the words here.
      if (typeof entry['text'] === 'string') turn.said ??= entry['text']
      addUsage(turn.usage, fieldsOf(entry['usage']))
      break
    case 'blackboard-seeded':
      if (isJsonFields(entry['blackboard'])) turn.blackboard ??= entry['blackboard']
      break
    case 'tool-called':
    case 'effect-ended':
      // The calls of a run are its steps, and a run is one act.
      if (turn.runs.size === 0) turn.acts.push(toolAct({ tool: textIn(entry, 'tool'), input: entry['input'] }, endOf(entry)))
      break
    case 'skill-decided':
      turn.proposed.set(textIn(entry, 'proposal_id'), fieldsOf(entry['request'])['inputs'])
      break
    case 'approval-requested': {
      const input = fieldsOf(turn.proposed.get(textIn(entry, 'proposal_id')))
      turn.acts.push({ kind: 'skill', name: textIn(entry, 'skill_id'), input, ...DONE })
      break
    }
    case 'skill-started':
      turn.runs.set(textIn(entry, 'run_id'), entry['inputs'])
      break
    case 'skill-applied':
    case 'skill-reused': {
      const run_id = textIn(entry, 'run_id')
      turn.acts.push(skillRun(entry as SkillFields, turn.runs.get(run_id)))
      turn.runs.delete(run_id)
      break
    }
    default:
  }
}

function endOf(entry: StandaloneEntry): Parameters<typeof toolAct>[1] {
  const { status, output, duration_ms, cost_usd } = entry
  return {
    status: status === 'ok' || status === 'reused' ? status : 'failed',
    output,
    error: null,
    duration_ms: numberOf(duration_ms),
    cost_usd: numberOf(cost_usd),
  }
}

function addUsage(sum: Trace['usage'], { input_tokens, output_tokens, cost_usd, model_calls }: JsonFields): void {
  sum.model_calls += numberOf(model_calls)
  sum.tokens += numberOf(input_tokens) + numberOf(output_tokens)
  sum.cost_usd += numberOf(cost_usd)
}

const numberOf = (value: Json | undefined): number => (typeof value === 'number' ? value : 0)

function traceOf(trace_id: string, turn: Turn, { place, labels }: { place: EpisodePlace; labels: readonly string[] }): Trace {
  const { first, last, said, blackboard, acts, usage } = turn
  return {
    trace_id,
    at: last,
    place,
    goal: { text: said ?? '', labels: [...labels] },
    ...(blackboard && { blackboard }),
    acts,
    usage: { ...usage, duration_ms: last - first },
    outcome: acts.at(-1)?.ok === false ? 'failed' : 'ok',
  }
}
