import type { Colour, Paint } from '../lib/paint.ts'
import { bar, count, counted, cut, cutMiddle, duration, harmless } from '../lib/text.ts'
import { reflexFigures } from './reflex-tally.ts'
import { addressesBy, totals, waitingIn, type Decision, type DemoState, type ScopeTally } from './state.ts'
import { blockedLine, decided, effectsLine, modelLine, reflexesLine, skillsLine, turnsLine } from './wording.ts'

export type Phase = 'starting' | 'sending' | 'waiting' | 'finishing'
export type View = { state: DemoState; phase: Phase; file: string; elapsed_ms: number; columns: number; rows: number; paint: Paint }

const MOST_COLUMNS = 110
const LEAST_COLUMNS = 30
/** Narrower terminals have no room for a turn's time. */
const NARROW = 64
const LEAST_NAME = 14
const MOST_SCOPES = 6
const MOST_DECISIONS = 10
const LABEL = 9

/** Returns the picture as lines that are narrower than the terminal and fewer than its rows. */
export function picture(view: View): string[] {
  const { state, columns, rows, paint } = view
  // A line as wide as the terminal would wrap.
  const width = Math.max(LEAST_COLUMNS, Math.min(columns - 1, MOST_COLUMNS))
  const top = [...heading(view, width), '', ...figures(view, width)]
  if (state.lines.sent === 0) return [...top, '', ...WHAT_COMES.map((line) => paint('dim', cut(line, width)))].slice(0, rows - 1)
  const free = Math.max(0, rows - 1 - top.length)
  const scopes = scopeTable(state, { width, paint, most: Math.max(1, Math.min(MOST_SCOPES, Math.floor(free / 2) - 2)) })
  const decisions = latest(state, { width, paint, most: Math.min(MOST_DECISIONS, free - scopes.length - 3) })
  return [...top, ...section(scopes), ...section(decisions)].slice(0, Math.max(1, rows - 1))
}

const WHAT_COMES = [
  'What comes, once the server is up (some seconds):',
  '  1  each line is an event, sent over HTTP to the scope of its host',
  '  2  filters drop what says nothing of a login; the rest joins the context',
  '  3  a reflex sees it: a small program that acts at once, or passes',
  '  4  what it passes a turn looks at: has an address failed too often?',
  '  5  what is decided is done, one effect at a time: an address is blocked',
  '  6  what is more than a block is a skill: a gate decides, or a person',
  '  7  one event is sent to fail: it is retried, then a dead letter',
]

const section = (lines: readonly string[]): string[] => (lines.length > 0 ? ['', ...lines] : [])

const PHASES: Record<Phase, string> = {
  starting: 'starting the server',
  sending: 'sending',
  waiting: 'waiting for the last outcomes',
  finishing: 'waiting for the dead letter',
}

function heading({ state, phase, file, elapsed_ms, paint }: View, width: number): string[] {
  const clock = `${PHASES[phase]}  ${duration(Math.floor(elapsed_ms / 100) * 100)}`
  const hosts = counted(Object.keys(state.scopes).length - 1, 'host')
  const source = `${harmless(file)}, ${counted(state.lines.total, 'line')} of ${hosts}; the real Worker, on this machine`
  return [`${paint('bold', 'Reflex demo')}${paint('dim', cut(clock, width - 12).padStart(width - 11))}`, paint('dim', cut(source, width))]
}

function figures({ state, paint }: View, width: number): string[] {
  const { lines, retries, dead } = state
  const { accepted, ignored, reflexed, considered, dead_lettered, cancelled, waiting } = totals(state)
  const progress = `${count(lines.sent)} of ${count(lines.total)} sent`
  const row = (label: string, text: string, colour?: Colour) => {
    const fitted = cut(text, width - LABEL)
    return paint('dim', label.padEnd(LABEL)) + (colour ? paint(colour, fitted) : fitted)
  }
  const others = [
    ...(dead_lettered > 0 ? [`${count(dead_lettered)} dead`] : []),
    ...(cancelled > 0 ? [`${count(cancelled)} cancelled`] : []),
  ]
  const parts = [
    `${count(ignored)} filtered out`,
    `${count(reflexed)} by reflex`,
    `${count(considered)} by turn`,
    ...others,
    `${count(waiting)} waiting`,
  ]
  const reflexes = reflexesLine(Object.fromEntries(Object.entries(state.reflexes).map(([id, tally]) => [id, reflexFigures(tally)])))
  const filled = bar(lines.total === 0 ? 0 : lines.sent / lines.total, width - LABEL - 2 - progress.length)
  return [
    `${row('lines', '')}${paint('cyan', filled)}  ${progress}`,
    row('events', `${count(accepted)} = ${parts.join(' + ')}`),
    row('reflexes', reflexes ?? 'none has run', 'green'),
    row('turns', turnsLine(state.turns, state.windows)),
    row('model', modelLine(state.model), 'yellow'),
    row('skills', skillsLine(state.skills) ?? 'none was proposed'),
    row('effects', effectsLine(state.effects)),
    row('blocked', blockedLine({ reflex: addressesBy(state.blocked, 'reflex'), turn: addressesBy(state.blocked, 'turn') })),
    row('failures', `${counted(retries.length, 'retry', 'retries')}, ${counted(dead.length, 'dead letter')}; one event is sent to fail`),
  ]
}

type Part = { width: number; paint: Paint; most: number }
const COLUMNS: readonly (readonly [string, (tally: ScopeTally) => number])[] = [
  ['accepted', ({ accepted }) => accepted],
  ['ignored', ({ ignored }) => ignored],
  ['reflex', ({ reflexed }) => reflexed],
  ['by turns', ({ considered }) => considered],
  ['waiting', waitingIn],
  ['dead', ({ dead_lettered }) => dead_lettered],
  ['turns', ({ turns }) => turns],
]

function scopeTable(state: DemoState, { width, paint, most }: Part): string[] {
  const seen = Object.entries(state.scopes).filter(([, { accepted }]) => accepted > 0)
  if (seen.length === 0) return []
  const shown = seen.sort(([, left], [, right]) => right.accepted - left.accepted).slice(0, most)
  const columns = fitting(width)
  const name = width - columns.reduce((sum, [head]) => sum + head.length + 2, 0)
  const rows = shown.map(([scope, tally]) => {
    const cells = columns.map(([head, value]) => count(value(tally)).padStart(head.length + 2))
    return cut(scope, name).padEnd(name) + cells.join('')
  })
  const more = seen.length - shown.length
  const note = more > 0 ? [paint('dim', `and ${counted(more, 'more scope')}`)] : []
  return [paint('dim', 'scope'.padEnd(name) + columns.map(([head]) => `  ${head}`).join('')), ...rows, ...note]
}

/** Drops columns until a scope's name fits. */
function fitting(width: number): typeof COLUMNS {
  let room = width - LEAST_NAME
  return COLUMNS.filter(([head]) => (room -= head.length + 2) >= 0)
}

function latest(state: DemoState, { width, paint, most }: Part): string[] {
  if (most <= 0 || state.decisions.length === 0) return []
  const decisions = state.decisions.slice(-most)
  const name = Math.min(24, Math.max(...decisions.map(({ scope }) => scope.length)))
  return [paint('dim', 'latest decisions'), ...decisions.map((decision) => turnLine(decision, { width, name, paint }))]
}

function turnLine(decision: Decision, { width, name, paint }: { width: number; name: number; paint: Paint }): string {
  const { at, scope, status, window } = decision
  const where =
    width < NARROW
      ? cut(scope, LEAST_NAME)
      : `${at.slice(11, 23)}  ${cut(scope, name).padEnd(name)}  ${(window === 'reflex' ? 'reflex' : `saw ${count(window)}`).padEnd(9)}`
  const head = `${where}  `
  const colour = status === 'none' ? 'dim' : status === 'result' ? 'green' : 'yellow'
  const text = status === 'result' ? cut(decided(decision), width - head.length) : cutMiddle(decided(decision), width - head.length)
  return paint('dim', head) + paint(colour, harmless(text))
}
