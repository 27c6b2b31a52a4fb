import type { Paint } from '../lib/paint.ts'
import { count, counted, cut, duration, harmless, wrap } from '../lib/text.ts'
import { FAILING_ATTEMPTS, FAILING_SCOPE } from './failing-scope.ts'
import { EXAMPLE } from './options.ts'
import { REFLEX_FILE } from './set-reflex.ts'
import { SKILL_FOLDER } from './set-skills.ts'
import { addresses, type Block, type Decider } from './state.ts'
import type { Summary } from './summary.ts'
import { blockedLine, effectsLine, modelLine, reflexesLine, shortened, skillsLine, turnsLine } from './wording.ts'

/** `curve`: lines about the scope that learned, if one did. */
type Look = { columns: number; paint: Paint; kept: boolean; curve: readonly string[] | null }
type Place = { width: number; paint: Paint }

const MOST_BLOCKED = 12
const MOST_SAID = 500
const MOST_APPROVALS = 5
const LABEL = 10

/** The final report for people. `columns` is Infinity to avoid truncation. */
export function report(summary: Summary, { columns, paint, kept, curve }: Look): string[] {
  const place = { width: columns - 1, paint }
  const row = ([label, text]: [string, string]) => `  ${paint('dim', label.padEnd(LABEL))}${cut(text, place.width - LABEL - 2)}`
  const parts = [
    conclusion(summary, place),
    figures(summary).map(row),
    blocks(summary, place),
    toApprove(summary, { ...place, kept }),
    said(summary, place),
    dead(summary, place),
    curve ?? [],
  ]
  if (!kept) parts.push(next(summary, paint))
  return parts
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')
    .split('\n')
}

function conclusion({ lines, file, blocked, decisions, model, times_ms }: Summary, { width, paint }: Place): string[] {
  const many = counted(addresses(blocked), 'address', 'addresses')
  const read = `Reflex read ${counted(lines.sent, 'line')} of ${harmless(file)} in ${duration(times_ms.work)} and blocked ${many}.`
  const others = decisions.all - decisions.without_model
  const who = model.asked ? `the model ${model.name}` : 'an offline stand-in (rules, no network)'
  const answered = others === 0 ? '' : `; ${who} answered the other ${others === 1 ? 'one' : count(others)}`
  const told = `${count(decisions.without_model)} of ${counted(decisions.all, 'decision')} took no model call${answered}.`
  const skipped = Object.entries(lines.left_out).map(([why, number]) => `${counted(number, 'line')} (${why})`)
  const rest = skipped.length > 0 ? [`Not sent: ${skipped.join(', ')}.`] : []
  return [...wrap(read, width).map((line) => paint('bold', line)), ...wrap(told, width).map((line) => paint('yellow', line)), ...rest]
}

function figures({
  events,
  reflexes,
  turns,
  model,
  skills,
  effects,
  blocked_by,
  events_per_second,
  speed,
  times_ms,
}: Summary): [string, string][] {
  const trouble = [
    ...(events.dead_lettered > 0 ? [`${count(events.dead_lettered)} dead-lettered`] : []),
    ...(events.cancelled > 0 ? [`${count(events.cancelled)} cancelled`] : []),
  ]
  const parts = [
    `${count(events.ignored)} filtered out`,
    `${count(events.by_reflex)} by reflex`,
    `${count(events.by_turn)} by turn`,
    ...trouble,
  ]
  const windows = { smallest: turns.smallest_window, largest: turns.largest_window }
  return [
    ['events', `${count(events.accepted)} = ${parts.join(' + ')}`],
    ['reflexes', reflexesLine(reflexes) ?? 'none'],
    ['turns', turnsLine(turns, windows)],
    ['model', modelLine(model)],
    ['skills', skillsLine(skills) ?? 'none was proposed'],
    ['effects', effectsLine(effects)],
    ['blocked', blockedLine(blocked_by)],
    ...(events.retried > 0 ? [['retries', counted(events.retried, 'event')] satisfies [string, string]] : []),
    ['rate', `${count(events_per_second)} events/s, from the first request to the last outcome${speed === null ? '' : ' (--speed)'}`],
    [
      'time',
      `${duration(times_ms.all)}: start ${duration(times_ms.start)}, events ${duration(times_ms.work)}, dead letter ${duration(times_ms.dead_letter)}`,
    ],
    [
      '',
      `turns ${duration(times_ms.turns)} (model ${duration(times_ms.model)}, effects ${duration(times_ms.effects)}), reflexes' effects ${duration(times_ms.reflex_effects)}`,
    ],
  ]
}

function blocks({ blocked, events }: Summary, { width, paint }: Place): string[] {
  if (blocked.length === 0) return [nothingBlocked(events)]
  const grouped = Array.from(Map.groupBy(blocked, ({ address }) => address).values()).sort(
    ([left], [right]) => (right?.attempts ?? 0) - (left?.attempts ?? 0),
  )
  const shown = grouped.slice(0, MOST_BLOCKED)
  const column = Math.max(...shown.map(([block]) => block?.address.length ?? 0)) + 2
  const row = ([block, ...others]: readonly Block[]) => {
    const { address = '', reason = '', attempts = 0 } = block ?? {}
    const where = others.length > 0 ? `on ${count(others.length + 1)} hosts: ` : ''
    const total = attempts > 0 ? `${count(attempts)} in the log; ` : ''
    return `  ${paint('green', harmless(address).padEnd(column))}${cut(total + where + shortened(reason), width - column - 2)}`
  }
  const part = (title: string, decider: Decider) => {
    const rows = shown.filter(([block]) => block?.by === decider).map(row)
    return rows.length > 0 ? [paint('bold', title), ...rows] : []
  }
  const more = grouped.length - shown.length
  return [
    ...part('Blocked by the reflex', 'reflex'),
    ...part('Blocked by the agent', 'turn'),
    ...(more > 0 ? [paint('dim', `  and ${count(more)} more: --json lists them all`)] : []),
  ]
}

/** The skill's first input names its subject. */
function toApprove({ approvals }: Summary, { width, paint, kept }: Place & { kept: boolean }): string[] {
  if (approvals.length === 0) return []
  const inner = width - 2
  const rows = approvals.slice(0, MOST_APPROVALS).map(({ skill_id, inputs, scope, why }) => {
    const about = Object.values(inputs).find((value) => typeof value === 'string') ?? ''
    return cut(harmless(`${skill_id} ${about} in ${scope}: ${why}`), inner)
  })
  const how = kept
    ? 'Approve it on the page Approvals of the dashboard, or by the command below.'
    : 'The server has ended. npm run demo -- --keep leaves it up and prints the command that approves it.'
  return [
    paint('bold', 'Waiting for approval'),
    ...rows.map((row) => `  ${paint('yellow', row)}`),
    ...wrap(how, inner).map((line) => `  ${line}`),
  ]
}

function said({ said: text }: Summary, { width, paint }: Place): string[] {
  if (text === null) return []
  return [paint('bold', 'What the agent said last'), ...wrap(cut(shortened(text), MOST_SAID), width - 2).map((line) => `  ${line}`)]
}

function nothingBlocked({ by_turn }: Summary['events']): string {
  if (by_turn === 0) return 'Nothing was blocked: no line of this log is one that sshd writes about a login.'
  return 'Nothing was blocked: no public address failed 5 times within 10 minutes.'
}

function dead({ dead_letters }: Summary, { width, paint }: Place): string[] {
  const inner = width - 2
  const why = `We sent one event that fails on purpose: the condition of ${FAILING_SCOPE} divides by zero. After ${FAILING_ATTEMPTS} attempts it is a dead letter (GET /v1/dlq):`
  const letters = dead_letters.map(({ event_id, error }) => `${event_id}: ${shortened(error)}`)
  return [
    paint('bold', 'Dead letters'),
    ...wrap(why, inner).map((line) => `  ${line}`),
    ...letters.flatMap((letter) => wrap(letter, inner).map((line) => `  ${paint('yellow', line)}`)),
  ]
}

function next({ file }: Summary, paint: Paint): string[] {
  const commands = [
    ['npm run demo -- --speed 50', 'watch it, 50 lines a second'],
    ['npm run demo -- --keep', 'then talk to the server with curl'],
    ...(file === EXAMPLE ? [['npm run demo -- --file /var/log/auth.log', 'read your own log'] as const] : []),
    [REFLEX_FILE, 'read the reflex'],
    [SKILL_FOLDER, 'read the skills'],
    ['npm run dev', 'write an agent: examples/agents/'],
  ] as const
  const column = Math.max(...commands.map(([command]) => command.length)) + 2
  return [paint('bold', 'Try next'), ...commands.map(([command, what]) => `  ${paint('cyan', command.padEnd(column))}${what}`)]
}
