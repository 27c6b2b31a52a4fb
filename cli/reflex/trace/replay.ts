import { existsSync } from 'node:fs'
import path from 'node:path'
import { Option, type Command } from 'commander'
import type { RangeProgress, RangeReport, ReplayReport, ReplaySide } from '../../../src/contract/reports/replay.ts'
import { CliError, UsageError } from '../../lib/cli-error.ts'
import { isTerminal, type Paint } from '../../lib/paint.ts'
import { count, counted, cut, dollars, duration } from '../../lib/text.ts'
import { refused } from '../../lib/api.ts'
import { route } from '../pages.ts'
import { handler, type Outcome, type Session } from '../session.ts'
import { safeJson, table, written } from '../table.ts'
import { fileText, jsonObject, timeOption, wholeNumber } from '../values.ts'

type Changes = {
  set?: string[]
  reflexes?: string
  reflexCode?: string[]
  manifest?: string
  instructions?: string
  model?: string
}
type Flags = Changes & {
  scope?: string
  file?: string
  mode?: 'pinned' | 'what-if'
  budgetUsd?: number
  budgetCalls?: number
  since?: string
  until?: string
}
type Body = { mode: 'pinned' | 'what_if'; changes?: Record<string, unknown>; budget?: { usd?: number; calls?: number } }

const several = (value: string, earlier: string[] = []): string[] => [...earlier, value]

export function addReplay(trace: Command): void {
  trace
    .command('replay [id]')
    .description('Decide again, and compare every decision; exit with 1 at a divergence. [id] is a trace or an exported file')
    .option('--file <file>', 'an exported file')
    .option('--scope <scope>', 'the scope whose log has the trace, or whose range is replayed')
    .addOption(timeOption('since', 'replay all traces of the scope from a time on'))
    .addOption(timeOption('until', 'up to a time; now by default'))
    .addOption(new Option('--mode <mode>', 'what-if if a change is named').choices(['pinned', 'what-if']))
    .option('--set <setting=value>', 'change a setting, such as gate.tau=0.9 or overlap=interrupt; repeatable', several)
    .option('--reflexes <json>', 'change the chain of reflexes: a JSON list, or @file')
    .option('--reflex-code <id=file>', 'change the code of a reflex; the id defaults to the name of the file; repeatable', several)
    .option('--manifest <file>', 'change a skill')
    .option('--instructions <file>', 'change the instructions')
    .option('--model <name>', 'change the model')
    .addOption(new Option('--budget-usd <usd>', 'ask the model for answers that are not recorded, up to this cost').argParser(Number))
    .addOption(new Option('--budget-calls <n>', 'ask it this often at most').argParser(wholeNumber))
    .action(handler(replay))
}

async function replay(session: Session, id: string | undefined, flags: Flags): Promise<Outcome> {
  const body = bodyOf(flags)
  if (flags.since !== undefined) return replayRange(session, body, flags)
  const file = flags.file ?? (id !== undefined && existsSync(id) ? id : undefined)
  if (id === undefined && file === undefined) throw new UsageError('Name a trace, an exported file, or a scope with --since.')
  const asked =
    file === undefined
      ? { path: route(['traces', id ?? '', 'replay'], { scope: flags.scope }), body }
      : { path: route(['replay']), body: { ...body, recording: jsonObject(`@${file}`, file) } }
  const report = await session.api().json<ReplayReport>(asked.path, { method: 'POST', body: asked.body, signal: session.signal })
  session.print.result(report, (paint) => reportLines(report, paint))
  return report.mode === 'what_if' || report.equivalent ? undefined : 1
}

/** `gate.tau` is the name that the statistics have for the setting `tau`. */
export function bodyOf({ mode, budgetUsd, budgetCalls, ...flags }: Flags): Body {
  const changes = changesOf(flags)
  const is_changed = Object.keys(changes).length > 0
  if (mode === 'pinned' && is_changed) throw new UsageError('A pinned replay takes no changes: leave out --mode.')
  if (mode === 'what-if' && !is_changed) throw new UsageError('A what-if needs a change, such as --set gate.tau=0.9.')
  const budget = { ...(budgetUsd !== undefined && { usd: budgetUsd }), ...(budgetCalls !== undefined && { calls: budgetCalls }) }
  if (!is_changed) return { mode: 'pinned' }
  return { mode: 'what_if', changes, ...(Object.keys(budget).length > 0 && { budget }) }
}

function changesOf({ set, reflexes, reflexCode, manifest, instructions, model }: Changes): Record<string, unknown> {
  const code = reflexCode?.map((text) => {
    const at = text.indexOf('=')
    const file = text.slice(at + 1)
    return [at === -1 ? path.parse(file).name : text.slice(0, at), fileText(file)] as const
  })
  return {
    ...(set && { settings: settingsOf(set) }),
    ...(reflexes !== undefined && { reflexes: jsonList(reflexes) }),
    ...(code && { reflex_code: Object.fromEntries(code) }),
    ...(manifest !== undefined && { manifest: jsonObject(`@${manifest}`, manifest) }),
    ...(instructions !== undefined && { instructions: fileText(instructions) }),
    ...(model !== undefined && { model }),
  }
}

function jsonList(text: string): unknown[] {
  const { list } = jsonObject(`{"list": ${text.startsWith('@') ? fileText(text.slice(1)) : text}}`, '--reflexes')
  if (!Array.isArray(list)) throw new UsageError('--reflexes is a JSON list, such as [{"id": "greet"}].')
  return list as unknown[]
}

function settingsOf(pairs: readonly string[]): Record<string, unknown> {
  const settings: Record<string, unknown> = {}
  for (const pair of pairs) {
    const at = pair.indexOf('=')
    if (at < 1) throw new UsageError(`${pair} is not a setting with a value.`, 'Write it as --set gate.tau=0.9')
    const names = pair
      .slice(0, at)
      .replace(/^gate\./, '')
      .split('.')
    const last = names.pop() ?? ''
    let inner = settings
    for (const name of names) inner = (inner[name] ??= {}) as Record<string, unknown>
    inner[last] = valueOf(pair.slice(at + 1))
  }
  return settings
}

/** JSON, else text. */
function valueOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

async function replayRange({ api, print, signal }: Session, body: Body, { scope, since, until }: Flags): Promise<Outcome> {
  if (scope === undefined) throw new UsageError('A time range is one of a scope: add --scope.')
  let total: RangeReport | null = null
  let cursor: string | null = null
  do {
    const asked = { ...body, since, until, ...(cursor !== null && { cursor }) }
    const request = { path: route(['scopes', scope, 'replay']), body: asked, signal }
    const part: RangeReport = await followRange(api(), request, (progress) => showProgress(print.json, progress))
    total = total === null ? part : together(total, part)
    cursor = part.next_cursor
  } while (cursor !== null)
  const report = total
  print.result(report, (paint) => rangeLines(report, paint))
  return report.mode === 'what_if' || report.equivalent ? undefined : 1
}

type Asking = { path: string; body: object; signal: AbortSignal }

async function followRange(
  { url, key }: ReturnType<Session['api']>,
  { path: at, body, signal }: Asking,
  show: (progress: RangeProgress) => void,
): Promise<RangeReport> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', accept: 'application/x-ndjson' }
  const response = await fetch(url + at, { method: 'POST', headers, body: JSON.stringify(body), signal })
  if (!response.ok || !response.body) throw await refused(response, `POST ${at}`)
  let rest = ''
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const { progress, report, error } = JSON.parse(line) as { progress?: RangeProgress; report?: RangeReport; error?: string }
      if (progress) show(progress)
      if (report) return report
      if (error !== undefined) throw new CliError(`The replay failed: ${error}`)
    }
  }
  throw new CliError('The server ended the replay without a report.')
}

function showProgress(json: boolean, { events, changed, unknown, at }: RangeProgress): void {
  if (json || !isTerminal(process.stderr)) return
  process.stderr.write(`\r\x1B[K${counted(events, 'event')}, ${count(changed)} changed, ${count(unknown)} unknown, up to ${at ?? '-'}`)
}

/** The sums of two parts of a range. Each part brings its own most telling examples. */
function together(one: RangeReport, other: RangeReport): RangeReport {
  const sides = (name: 'recorded' | 'replayed'): ReplaySide => {
    const [left, right] = [one[name], other[name]]
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
  return {
    ...other,
    equivalent: one.equivalent && other.equivalent,
    entries: one.entries + other.entries,
    events: one.events + other.events,
    same: one.same + other.same,
    changed: one.changed + other.changed,
    unknown: one.unknown + other.unknown,
    effects: { appear: one.effects.appear + other.effects.appear, vanish: one.effects.vanish + other.effects.vanish },
    examples: [...one.examples, ...other.examples].slice(0, 10),
    recorded: sides('recorded'),
    replayed: sides('replayed'),
  }
}

const WIDTH = 48
const shown = (value: unknown): string => cut(written(typeof value === 'string' ? value : safeJson(value)), WIDTH)

type Difference = { kind: string; path: string; recorded: unknown; replayed: unknown }

function sideBySide(differences: readonly Difference[], paint: Paint): string[] {
  return table(
    differences,
    [
      { title: 'DECISION', of: ({ kind, path: at }) => `${kind} ${at}`.trimEnd() },
      { title: 'RECORDED', of: ({ recorded }) => shown(recorded), colour: () => 'red' },
      { title: 'REPLAYED', of: ({ replayed }) => shown(replayed), colour: () => 'green' },
    ],
    { paint },
  )
}

function reportLines(report: ReplayReport, paint: Paint): string[] {
  const { mode, equivalent, compared, changed, divergences, unknown, recorded, replayed, effects = [], spent } = report
  const mark = equivalent ? paint('green', '✓') : paint(mode === 'pinned' ? 'red' : 'yellow', mode === 'pinned' ? '✗' : '≠')
  const counts =
    mode === 'pinned'
      ? `${counted(compared, 'decision')} compared, ${counted(divergences.length, 'divergence')}, ${unknown.length} unknown`
      : `${count(changed)} of ${counted(compared, 'decision')} would change, ${unknown.length} unknown`
  return [
    `${mark} ${counts}`,
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

function rangeLines(report: RangeReport, paint: Paint): string[] {
  const { scope, events, same, changed, unknown, decisions, effects, examples, reasons, recorded, replayed, spent } = report
  return [
    `${changed === 0 ? paint('green', '✓') : paint('yellow', '≠')} ${written(scope)}: ${counted(events, 'event')}; ${count(same)} decisions the same, ${count(changed)} changed, ${count(unknown)} unknown`,
    `${count(effects.appear)} effects would be, ${count(effects.vanish)} would not have been`,
    '',
    ...table(
      Object.entries(decisions),
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
      { title: 'UNANSWERED', of: ([, { unanswered }]) => unanswered ?? 0 },
    ],
    { paint },
  )
