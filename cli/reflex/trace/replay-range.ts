import {
  equivalenceOf,
  type RangeProgress,
  type RangeReport,
  type ReplayExample,
  type ReplaySide,
} from '../../../src/features/replay/contract/replay.ts'
import { LineReader } from '../../../src/base/json-lines.ts'
import type { Spent } from '../../../src/features/replay/contract/what-if.ts'
import { refused } from '../../lib/api.ts'
import { CliError, messageOf } from '../../lib/cli-error.ts'
import { isTerminal } from '../../lib/paint.ts'
import { count, counted } from '../../lib/text.ts'
import { requestOf } from '../ask.ts'
import type { Printer } from '../printer.ts'
import type { ExitOutcome, Session } from '../session.ts'
import { rangeLines } from './replay-report.ts'

type Budget = { usd?: number; calls?: number }
export type Body = { mode: 'pinned' | 'what_if'; changes?: Record<string, unknown>; budget?: Budget }

type Range = { scope: string; since: string; until: string | undefined }

/** Follows the cursors of a range to its end. */
export async function replayRange({ api, print, signal }: Session, body: Body, { scope, since, until }: Range): Promise<ExitOutcome> {
  let total: RangeReport | null = null
  let cursor: string | null = null
  do {
    const asked = { ...body, budget: leftOf(body.budget, total?.spent), since, until, ...(cursor !== null && { cursor }) }
    const request = { path: requestOf({ at: 'post /v1/scopes/{scope}/replay' }, { path: [scope] }).address, body: asked, signal }
    const before: RangeReport | null = total
    const part = await followRange(api(), request, (progress) => progressed(print, before, progress))
    total = total === null ? part : together(total, part)
    cursor = part.next_cursor
  } while (cursor !== null)
  const report = total
  if (showsProgress(print)) process.stderr.write(CLEARED)
  print.result(report, (paint) => rangeLines(report, paint))
  return report.mode === 'what_if' || report.equivalent !== false ? undefined : 1
}

type Asking = { path: string; body: object; signal: AbortSignal }

async function followRange(
  { url, key }: ReturnType<Session['api']>,
  { path: at, body, signal }: Asking,
  show: (progress: RangeProgress) => void,
): Promise<RangeReport> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', accept: 'application/x-ndjson' }
  const response = await fetch(url + at, { method: 'POST', headers, body: JSON.stringify(body), signal }).catch((error: unknown) => {
    signal.throwIfAborted()
    throw new CliError(`POST ${at} was not answered: ${messageOf(error)}`, `Check that the server runs at ${url}: reflex doctor`, error)
  })
  if (!response.ok || !response.body) throw await refused(response, `POST ${at}`)
  const lines = new LineReader()
  for await (const chunk of response.body) {
    for (const line of lines.read(chunk)) {
      const { progress, report, error } = JSON.parse(line) as { progress?: RangeProgress; report?: RangeReport; error?: string }
      if (progress) show(progress)
      if (report) return report
      if (error !== undefined) throw new CliError(`The replay failed: ${error}`)
    }
  }
  throw new CliError('The server ended the replay without a report.')
}

const CLEARED = '\r\x1B[K'
const showsProgress = ({ json }: Printer): boolean => !json && isTerminal(process.stderr)

function progressed(print: Printer, before: RangeReport | null, { events, changed, unknown, at }: RangeProgress): void {
  if (!showsProgress(print)) return
  const sums = {
    events: events + (before?.events ?? 0),
    changed: changed + (before?.changed ?? 0),
    unknown: unknown + (before?.unknown ?? 0),
  }
  const counts = `${counted(sums.events, 'event')}, ${count(sums.changed)} changed, ${count(sums.unknown)} unknown`
  process.stderr.write(`${CLEARED}${counts}, up to ${at ?? '-'}`)
}

/** The budget is for the whole range: each request gets what the earlier ones left of it. */
export function leftOf(budget: Budget | undefined, spent: RangeReport['spent']): Budget | undefined {
  if (!budget || !spent) return budget
  const usd = budget.usd === undefined ? undefined : budget.usd - (spent.usd ?? 0)
  const calls = budget.calls === undefined ? undefined : budget.calls - spent.calls
  if ((usd ?? 1) <= 0 || (calls ?? 1) <= 0) return undefined
  return { ...(usd !== undefined && { usd }), ...(calls !== undefined && { calls }) }
}

const MOST_EXAMPLES = 10
const MOST_REASONS = 10

/** The sums of two parts of a range. */
export function together(one: RangeReport, other: RangeReport): RangeReport {
  const spent = one.spent && other.spent ? spentOf(one.spent, other.spent) : (one.spent ?? other.spent)
  const changed = one.changed + other.changed
  const unknown = one.unknown + other.unknown
  return {
    ...other,
    equivalent: equivalenceOf({ changed, unknown }),
    entries: one.entries + other.entries,
    events: one.events + other.events,
    same: one.same + other.same,
    changed,
    unknown,
    decisions: decisionsOf(one.decisions, other.decisions),
    reasons: reasonsOf([...one.reasons, ...other.reasons]),
    effects: { appear: one.effects.appear + other.effects.appear, vanish: one.effects.vanish + other.effects.vanish },
    examples: examplesOf(one.examples, other.examples),
    recorded: sideOf(one.recorded, other.recorded),
    replayed: sideOf(one.replayed, other.replayed),
    ...(spent && { spent }),
  }
}

function decisionsOf(one: RangeReport['decisions'], other: RangeReport['decisions']): RangeReport['decisions'] {
  const sums = { ...one }
  for (const [kind, { same, changed, unknown }] of Object.entries(other)) {
    const sum = sums[kind] ?? { same: 0, changed: 0, unknown: 0 }
    sums[kind] = { same: sum.same + same, changed: sum.changed + changed, unknown: sum.unknown + unknown }
  }
  return sums
}

function reasonsOf(reasons: RangeReport['reasons']): RangeReport['reasons'] {
  const counts = new Map<string, number>()
  for (const { reason, count: many } of reasons) counts.set(reason, (counts.get(reason) ?? 0) + many)
  const summed = Array.from(counts, ([reason, many]) => ({ reason, count: many }))
  return summed.toSorted((left, right) => right.count - left.count).slice(0, MOST_REASONS)
}

/** Each part has examples of its own, the clearest first. Equal changes share one example. */
function examplesOf(one: readonly ReplayExample[], other: readonly ReplayExample[]): ReplayExample[] {
  const shapes = new Map<string, ReplayExample>()
  const rows = Array.from({ length: Math.max(one.length, other.length) }, (_, rank) => [one[rank], other[rank]])
  for (const example of rows.flat()) {
    if (!example) continue
    const shape = `${example.why} ${example.path}`
    const known = shapes.get(shape)
    shapes.set(shape, known ? { ...known, alike: known.alike + example.alike } : example)
  }
  return [...shapes.values()].slice(0, MOST_EXAMPLES)
}

function sideOf(left: ReplaySide, right: ReplaySide): ReplaySide {
  const { usage: a } = left
  const { usage: b } = right
  return {
    usage: {
      input_tokens: a.input_tokens + b.input_tokens,
      output_tokens: a.output_tokens + b.output_tokens,
      model_calls: a.model_calls + b.model_calls,
      cost_usd: a.cost_usd === null || b.cost_usd === null ? null : a.cost_usd + b.cost_usd,
    },
    effects: left.effects + right.effects,
    duration_ms: left.duration_ms + right.duration_ms,
    ...(right.unanswered !== undefined && { unanswered: (left.unanswered ?? 0) + right.unanswered }),
  }
}

const spentOf = (one: Spent, other: Spent): Spent => ({
  calls: one.calls + other.calls,
  usd: one.usd === null || other.usd === null ? null : one.usd + other.usd,
})
