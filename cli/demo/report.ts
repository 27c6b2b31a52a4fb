import type { Paint } from '../lib/paint.ts'
import { count, counted, cut, dollars, duration, harmless, wrap } from '../lib/text.ts'
import { EXAMPLE } from './options.ts'
import { FAILING_ATTEMPTS, FAILING_SCOPE, REFLEX_FILE, SKILL_FOLDER } from './run.ts'
import type { Block, DemoSummary } from './summary.ts'

/** `columns` is Infinity to avoid truncation. `curve`: lines about the scope that learned. */
type Look = { columns: number; paint: Paint; kept: boolean; curve: readonly string[] }

const MOST_BLOCKED = 12
const MOST_APPROVALS = 5
const LABEL = 10
const INSTANT = /\d{4}-(\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z/g

/** The summary for people. The dashboard of a server that is kept shows the rest. */
export function report(summary: DemoSummary, { columns, paint, kept, curve }: Look): string[] {
  const width = columns - 1
  const parts = [
    conclusion(summary).flatMap((sentence) => wrap(sentence, width).map((line) => paint('bold', line))),
    rows(summary).map(([label, text]) => `  ${paint('dim', label.padEnd(LABEL))}${cut(text, width - LABEL - 2)}`),
    blocks(summary, width, paint),
    curve,
    kept ? [] : next(summary, paint),
  ]
  return parts.filter((lines) => lines.length > 0).flatMap((lines, index) => (index === 0 ? lines : ['', ...lines]))
}

function conclusion({ lines, file, blocked, blocked_by, events, decisions, model, times_ms }: DemoSummary): string[] {
  const many = counted(blocked_by.reflex + blocked_by.turn, 'address', 'addresses')
  const others = decisions.all - decisions.without_model
  const who = model.asked ? `the model ${model.name}` : 'an offline stand-in (rules, no network)'
  const answered = others === 0 ? '' : `; ${who} answered the other ${others === 1 ? 'one' : count(others)}`
  const skipped = Object.entries(lines.left_out).map(([why, number]) => `${counted(number, 'line')} (${why})`)
  const idle =
    events.by_turn === 0
      ? 'no line of this log is one that sshd writes about a login'
      : 'no public address failed 5 times within 10 minutes'
  return [
    `Reflex read ${counted(lines.sent, 'line')} of ${harmless(file)} in ${duration(times_ms.work)} and blocked ${many}.`,
    `${count(decisions.without_model)} of ${counted(decisions.all, 'decision')} took no model call${answered}.`,
    ...(blocked.length === 0 ? [`Nothing was blocked: ${idle}.`] : []),
    ...(skipped.length > 0 ? [`Not sent: ${skipped.join(', ')}.`] : []),
  ]
}

/** `3 ran, 1 refused`, without what is zero. */
const tally = (parts: Readonly<Record<string, number>>, separator = ', '): string =>
  Object.entries(parts)
    .flatMap(([name, value]) => (value > 0 ? [`${count(value)} ${name}`] : []))
    .join(separator)
const each = <Tally>(of: Readonly<Record<string, Tally>>, say: (one: Tally) => string): string =>
  Object.entries(of)
    .map(([id, one]) => `${harmless(id)}: ${say(one)}`)
    .join('; ')

function rows({
  events,
  reflexes,
  turns,
  model,
  skills,
  blocked_by,
  approvals,
  dead_letters,
  events_per_second,
  times_ms,
}: DemoSummary): [string, string][] {
  const { accepted, ignored, by_reflex, by_turn, dead_lettered, cancelled } = events
  const fates = { 'filtered out': ignored, 'by reflex': by_reflex, 'by turn': by_turn, 'dead-lettered': dead_lettered, cancelled }
  const tokens = counted(model.input_tokens + model.output_tokens, 'token')
  const called = `${counted(model.calls, 'call')}${model.failed > 0 ? ` (${count(model.failed)} failed)` : ''}`
  const waiting = approvals.map(({ skill_id, inputs, scope, why }) => {
    const about = Object.values(inputs).find((value) => typeof value === 'string') ?? ''
    return harmless(`${skill_id} ${about} in ${scope}: ${why}`)
  })
  return [
    ['events', `${count(accepted)} = ${tally(fates, ' + ')}; ${count(events_per_second)} a second`],
    [
      'reflexes',
      each(reflexes, ({ fired, passed, troubled, mean_us }) => `${tally({ fired, passed, troubled })}, ${count(mean_us)} µs each`) ||
        'none',
    ],
    [
      'turns',
      `${count(turns.started)}: ${tally({ acted: turns.acted, 'found nothing': turns.none, failed: turns.failed, restarted: turns.other })}; windows of ${count(turns.smallest_window)} to ${counted(turns.largest_window, 'event')}`,
    ],
    [
      'model',
      model.asked
        ? `${model.name}: ${called}, ${tokens}, ${dollars(model.cost_usd)}`
        : `offline stand-in; ${called} (about ${tokens} with a real model)`,
    ],
    ['skills', each(skills, ({ to_approve, ...ends }) => tally({ ...ends, 'to be approved': to_approve })) || 'none was proposed'],
    ['blocked', tally({ 'by a reflex': blocked_by.reflex, 'by the agent': blocked_by.turn }) || 'nobody'],
    ...waiting.slice(0, MOST_APPROVALS).map((text): [string, string] => ['approve', text]),
    ...dead_letters.map(({ event_id, error }): [string, string] => [
      'dead',
      harmless(`${event_id} of ${FAILING_SCOPE}, after ${FAILING_ATTEMPTS} attempts: ${error.split('\n')[0]}`),
    ]),
    ['time', `${duration(times_ms.all)}: start ${duration(times_ms.start)}, events ${duration(times_ms.work)}`],
  ]
}

function blocks({ blocked }: DemoSummary, width: number, paint: Paint): string[] {
  const found = Array.from(Map.groupBy(blocked, ({ address }) => address).values()).sort(
    ([left], [right]) => (right?.attempts ?? 0) - (left?.attempts ?? 0),
  )
  const shown = found.slice(0, MOST_BLOCKED)
  const column = Math.max(...shown.map(([block]) => block?.address.length ?? 0)) + 2
  const row = ([first, ...others]: readonly Block[]) => {
    const { address = '', reason = '', attempts = 0, by = 'turn' } = first ?? {}
    const where = others.length > 0 ? `on ${count(others.length + 1)} hosts: ` : ''
    const total = attempts > 0 ? `${count(attempts)} in the log; ` : ''
    const text = `${by === 'reflex' ? 'reflex' : 'agent '}  ${total}${where}${harmless(reason.replaceAll(INSTANT, '$1 $2'))}`
    return `  ${paint('green', harmless(address).padEnd(column))}${cut(text, width - column - 2)}`
  }
  const more = found.length > shown.length ? [`  and ${count(found.length - shown.length)} more: --json lists them all`] : []
  return shown.length > 0 ? [paint('bold', 'Blocked'), ...shown.map(row), ...more] : []
}

function next({ file }: DemoSummary, paint: Paint): string[] {
  const commands = [
    ['npm run demo -- --keep', 'see it in the dashboard, and approve'],
    ...(file === EXAMPLE ? [['npm run demo -- --file /var/log/auth.log', 'read your own log'] as const] : []),
    [REFLEX_FILE, 'read the reflex'],
    [SKILL_FOLDER, 'read the skills'],
    ['npm run dev', 'write an agent: examples/agents/'],
  ] as const
  const column = Math.max(...commands.map(([command]) => command.length)) + 2
  return [paint('bold', 'Try next'), ...commands.map(([command, what]) => `  ${paint('cyan', command.padEnd(column))}${what}`)]
}

/** The address, and commands to paste into another terminal. */
export function howToTalk({ url, key, approvals }: { url: string; key: string } & Pick<DemoSummary, 'approvals'>): string[] {
  const approve = approvals.slice(0, 1).map(({ id }) => `curl -s -X POST -H "Authorization: Bearer $KEY" $URL/v1/approvals/${id}/approve`)
  return [
    `The server is up until you press Ctrl-C. Its dashboard: ${url}, with this key:`,
    '',
    key,
    '',
    'In another terminal:',
    '',
    `KEY=${key} URL=${url}`,
    'export REFLEX_URL="$URL" REFLEX_KEY="$KEY"',
    `curl -s -H "Authorization: Bearer $KEY" $URL/v1/incidents`,
    ...approve,
    '',
    `Every route: ${url}/v1/docs`,
  ]
}
