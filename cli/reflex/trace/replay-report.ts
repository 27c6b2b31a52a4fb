import { canonicalJson } from '../../../src/base/json.ts'
import type { RangeReport, ReplayMode, ReplayReport, ReplaySide } from '../../../src/features/replay/contract/replay.ts'
import type { Paint } from '../../lib/paint.ts'
import { count, counted, cut, dollars, duration } from '../../lib/text.ts'
import { table, written, type Column } from '../table.ts'

const WIDTH = 48
/** Characters before the first difference that are shown. */
const LEAD = 12
const textOf = (value: unknown): string => written(typeof value === 'string' ? value : canonicalJson(value))
const shown = (value: unknown): string => cut(textOf(value), WIDTH)

/** Both texts, without a long beginning that they have in common. */
function besides(recorded: unknown, replayed: unknown): [string, string] {
  const texts = [textOf(recorded), textOf(replayed)] as const
  let same = 0
  while (same < texts[0].length && texts[0][same] === texts[1][same]) same += 1
  const from = same > WIDTH / 2 ? same - LEAD : 0
  const [one, other] = texts.map((text) => cut(from > 0 ? `…${text.slice(from)}` : text, WIDTH))
  return [one ?? '', other ?? '']
}

type Difference = { kind: string; path: string; recorded: unknown; replayed: unknown }

function sideBySide(differences: readonly Difference[], paint: Paint): string[] {
  return table(
    differences,
    [
      { title: 'DECISION', of: ({ kind, path: at }) => `${kind} ${at}`.trimEnd() },
      { title: 'RECORDED', of: ({ recorded, replayed }) => besides(recorded, replayed)[0], colour: () => 'red' },
      { title: 'REPLAYED', of: ({ recorded, replayed }) => besides(recorded, replayed)[1], colour: () => 'green' },
    ],
    { paint },
  )
}

/** A change of a what-if is an answer, a divergence of a pinned replay a failure. */
function markOf(mode: ReplayMode, equivalent: boolean | null, paint: Paint): string {
  if (equivalent === null) return paint('yellow', '?')
  if (equivalent) return paint('green', '✓')
  return mode === 'pinned' ? paint('red', '✗') : paint('yellow', '≠')
}

/** The words for a replay that differs nowhere, but has decisions that are unknown. */
const openIn = (equivalent: boolean | null): string => (equivalent === null ? ': not known whether all are the same' : '')

export function reportLines(report: ReplayReport, paint: Paint): string[] {
  const { mode, equivalent, compared, changed, divergences, unknown, recorded, replayed, effects = [], spent } = report
  const counts =
    mode === 'pinned'
      ? `${counted(compared, 'decision')} compared, ${counted(divergences.length, 'divergence')}, ${unknown.length} unknown`
      : `${count(changed)} of ${counted(compared, 'decision')} would change, ${unknown.length} unknown`
  return [
    `${markOf(mode, equivalent, paint)} ${counts}${openIn(equivalent)}`,
    ...(divergences.length > 0 ? ['', ...sideBySide(divergences, paint)] : []),
    ...(effects.length > 0 ? [''] : []),
    ...effects.map(({ change, act, content }) =>
      paint(
        change === 'appears' ? 'green' : 'red',
        `${change === 'appears' ? '+ would be   ' : '- would not be'} ${written(act)} ${shown(content)}`,
      ),
    ),
    ...unknown.map(({ kind, span_id, reason }) => `${paint('yellow', '?')} ${written(kind)} ${written(span_id)}: ${written(reason)}`),
    '',
    ...sideLines({ recorded, replayed }, paint),
    ...(spent ? [`Asked the model ${counted(spent.calls, 'time')}, ${dollars(spent.usd)}.`] : []),
  ]
}

export function rangeLines(report: RangeReport, paint: Paint): string[] {
  const {
    scope,
    mode,
    equivalent,
    entries,
    events,
    same,
    changed,
    unknown,
    decisions,
    effects,
    examples,
    reasons,
    recorded,
    replayed,
    spent,
  } = report
  if (entries === 0) return [`The log of ${written(scope)} has nothing in this range.`]
  return [
    `${markOf(mode, equivalent, paint)} ${written(scope)}: ${counted(events, 'event')}; ${counted(same, 'decision')} the same, ${count(changed)} changed, ${count(unknown)} unknown${openIn(equivalent)}`,
    ...(mode === 'what_if' ? [`${counted(effects.appear, 'effect')} would be, ${count(effects.vanish)} would not have been`] : []),
    '',
    ...table(
      Object.entries(decisions).toSorted(([one], [other]) => one.localeCompare(other)),
      [
        { title: 'KIND', of: ([kind]) => kind },
        { title: 'SAME', of: ([, tally]) => tally.same },
        { title: 'CHANGED', of: ([, tally]) => tally.changed },
        { title: 'UNKNOWN', of: ([, tally]) => tally.unknown },
      ],
      { paint },
    ),
    ...examples.flatMap(({ why, alike, trace_id, at, ...difference }) => [
      '',
      `${paint('yellow', '≠')} ${written(why)}${alike > 1 ? ` (${count(alike)} alike)` : ''}  ${paint('dim', `${written(trace_id)} ${written(at)}`)}`,
      ...sideBySide([difference], paint).slice(1),
    ]),
    ...(reasons.length > 0 ? [''] : []),
    ...reasons.map(({ reason, count: many }) => `${paint('yellow', '?')} ${count(many)} × ${written(reason)}`),
    '',
    ...sideLines({ recorded, replayed }, paint),
    ...(spent ? [`Asked the model ${counted(spent.calls, 'time')}, ${dollars(spent.usd)}.`] : []),
  ]
}

const unanswered: Column<[string, ReplaySide]> = { title: 'UNANSWERED', of: ([, side]) => side.unanswered ?? 0 }

const sideLines = (sides: { recorded: ReplaySide; replayed: ReplaySide }, paint: Paint): string[] =>
  table(
    Object.entries(sides),
    [
      { title: '', of: ([name]) => name },
      { title: 'MODEL CALLS', of: ([, { usage }]) => usage.model_calls },
      { title: 'TOKENS', of: ([, { usage }]) => usage.input_tokens + usage.output_tokens },
      { title: 'COST', of: ([, { usage }]) => dollars(usage.cost_usd) },
      { title: 'TOOL CALLS', of: ([, { effects }]) => effects },
      { title: 'TIME', of: ([, { duration_ms }]) => duration(duration_ms) },
      ...(sides.replayed.unanswered === undefined ? [] : [unanswered]),
    ],
    { paint },
  )
