import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { EpisodeAct, Saw } from '../../src/features/learning/episode.ts'
import type { Event } from '../../src/core/event.ts'
import type { WindowCounts } from '../../src/reflexes/reflex-context.ts'
import type { JsonFields } from '../../src/base/json.ts'
import { drawOf, hashOf } from './draw.ts'
import { rowsOf, tableNames } from './tables.ts'

/** An event with its context, and the decision that is right. */
export type Item = { id: string; at: number; source: string; saw: Saw; label: EpisodeAct[] }
/**
 * `speaks`: the teacher says in one of several ways that it did what it did. `again`: the answers
 * of a teacher that was recorded.
 */
export type Input = { name: string; items: Item[]; trusted: ReadonlySet<string>; speaks?: true; again?: Answers }
type Answers = (item: Pick<Item, 'id' | 'label'>, attempt: number) => EpisodeAct[]

/** Names are permuted: nothing may be known beforehand. */
const name = (word: string): string => `x${hashOf(`seed ${word}`).toString(36)}`
const tool = (named: string, input: JsonFields): EpisodeAct[] => [
  {
    kind: 'tool',
    name: name(named),
    input: Object.fromEntries(Object.entries(input).map(([key, value]) => [name(key), value])),
    ok: true,
    cost_usd: 0,
    duration_ms: 0,
  },
]
const lines = (directory: string, file: string): string[] =>
  readFileSync(join(directory, file), 'utf8')
    .split(/\r?\n/)
    .filter((line) => line !== '')

type Fields = { type: string; source: string; at: number; fields: JsonFields }
const eventOf = ({ type, source, at, fields }: Fields, id: string): Event & Record<string, unknown> => ({
  id,
  type: name(type),
  scope: 'bench',
  source,
  timestamp: new Date(at).toISOString(),
  meta: { trace_id: id, correlation_id: null, causation_id: null },
  ...Object.fromEntries(Object.entries(fields).map(([key, value]) => [name(key), value])),
})

const WINDOWS = { '10s': 10_000, '1m': 60_000, '10m': 600_000 } as const
type Seen = Event & Record<string, unknown>

/** The context of the last of these events of one scope. */
function sawOf(events: readonly Seen[], times: readonly number[], from: number): Saw {
  const last = events.length - 1
  const counts = (ms: number): WindowCounts => {
    const found: WindowCounts = { total: 0, by_type: {}, by_source: {} }
    for (let at = last; at >= from && (times[last] ?? 0) - (times[at] ?? 0) < ms; at -= 1) {
      const { type, source } = events[at] as Seen
      found.total += 1
      found.by_type[type] = (found.by_type[type] ?? 0) + 1
      found.by_source[source] = (found.by_source[source] ?? 0) + 1
    }
    return found
  }
  const window = { '10s': counts(WINDOWS['10s']), '1m': counts(WINDOWS['1m']), '10m': counts(WINDOWS['10m']) }
  return { event: events[last] as Seen, recent_events: events.slice(Math.max(from, last - 9)), window, scratch: {}, recent_actions: [] }
}

function stream(entries: readonly (Fields & { label: EpisodeAct[] })[]): Item[] {
  const events = entries.map((entry, index) => eventOf(entry, `e${index}`))
  const times = entries.map(({ at }) => at)
  return entries.map(({ at, source, label }, index) => ({
    id: `e${index}`,
    at,
    source,
    label,
    saw: sawOf(events.slice(Math.max(0, index - 600), index + 1), times.slice(Math.max(0, index - 600), index + 1), 0),
  }))
}

/** Events with a text, each an hour after the one before. */
export const itemsOf = (asked: readonly { asked: string; at: number; acts: EpisodeAct[] }[]): Item[] =>
  stream(asked.map(({ asked: text, at, acts }) => ({ type: 'asked', source: 'bench', at, fields: { text }, label: acts })))

const ADDRESS = /(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])/
/** Guesses and probes; the server's own remarks about them are no occasion of their own. */
const ATTACK = /: (?:Failed password for|Invalid user|reverse mapping checking|error: maximum authentication attempts)/

function ssh(directory: string): Input {
  const year = Date.UTC(2025, 0, 1)
  const entries = lines(directory, 'ssh-auth.log').map((line) => {
    const [, month = '', day = '', clock = ''] = /^(\w{3}) +(\d+) (\S+)/.exec(line) ?? []
    const at = Date.parse(`${day} ${month} 2025 ${clock} UTC`) || year
    const address = ADDRESS.exec(line)?.[0]
    const label = ATTACK.test(line) && address !== undefined ? tool('block', { address, why: 'guesses' }) : []
    return { type: 'log.line', source: 'host:LabSZ', at, fields: { host: 'LabSZ', line }, label }
  })
  return { name: 'SSH log lines', items: stream(entries), trusted: new Set(['host:LabSZ']) }
}

/** Blocks an address at its third failed password among the last ten lines, not before. */
function bursts(directory: string): Input {
  const { items, trusted } = ssh(directory)
  const failures = items.map(({ saw: { event } }) => /Failed password .* from (\S+) port/.exec(String(event[name('line')]))?.[1] ?? null)
  return {
    name: 'SSH bursts',
    trusted,
    items: items.map((item, index) => {
      const address = failures[index] ?? null
      const alike = failures.slice(Math.max(0, index - 9), index + 1).filter((other) => other === address).length
      return { ...item, label: address !== null && alike >= 3 ? tool('block', { address, why: 'guesses' }) : [] }
    }),
  }
}

/** A scope for each session: an event of its own type for each template, then one that ends it. */
function hdfs(directory: string): Input {
  const items = lines(directory, 'hdfs-sessions.csv')
    .slice(1)
    .map((line, index): Item => {
      const [sequence = '', label] = line.split(',')
      const at = Date.UTC(2025, 0, 1) + index * 1000
      const source = `node:${hashOf(`node ${index}`) % 40}`
      const types = [...sequence.split(' ').map((template) => `block.${template}`), 'session.end']
      const events = types.map((type, step) => eventOf({ type, source, at, fields: {} }, `s${index}-${step}`))
      return {
        id: `s${index}`,
        at,
        source,
        saw: sawOf(
          events,
          types.map(() => at),
          0,
        ),
        label: label === '1' ? tool('report', { severity: 'high' }) : [],
      }
    })
  return { name: 'HDFS sessions', items, trusted: new Set() }
}

const person = (index: number): string => `user:${hashOf(`user ${index}`) % 200}`

function said(name: string, rows: readonly { text: string; label: EpisodeAct[] }[]): Input {
  const at = (index: number) => Date.UTC(2025, 0, 1) + index * 60_000
  return {
    name,
    items: stream(rows.map(({ text, label }, index) => ({ type: 'said', source: person(index), at: at(index), fields: { text }, label }))),
    trusted: new Set(),
  }
}

const snips = (directory: string): Input =>
  said(
    'SNIPS intents',
    lines(directory, 'snips-intents.tsv').map((line) => {
      const [intent = '', text = ''] = line.split('\t')
      return { text, label: tool('route', { intent }) }
    }),
  )

/** A tool for each intent, and a teacher that speaks after its calls. */
const talk = (directory: string): Input => ({
  ...said(
    'SNIPS, a tool each, then words',
    lines(directory, 'snips-intents.tsv').map((line) => {
      const [intent = '', text = ''] = line.split('\t')
      return { text, label: tool(intent, {}) }
    }),
  ),
  speaks: true,
})

const snipsCalls = (directory: string): Input =>
  said(
    'SNIPS tool calls',
    lines(directory, 'snips-intents.tsv').map((line) => {
      const [intent = '', text = '', slots = '{}'] = line.split('\t')
      return { text, label: tool(intent, JSON.parse(slots) as JsonFields) }
    }),
  )

const sms = (directory: string): Input =>
  said(
    'SMS spam',
    lines(directory, 'sms-spam.tsv').map((line) => {
      const [label, text = ''] = line.split('\t')
      return { text, label: label === 'spam' ? tool('quarantine', { folder: 'spam' }) : [] }
    }),
  )

const coin = (directory: string): Input =>
  said(
    'coin flips',
    lines(directory, 'sms-spam.tsv').map((line, index) => {
      const [, text = ''] = line.split('\t')
      return { text, label: drawOf(`coin ${index}`) < 0.5 ? tool('quarantine', { folder: 'spam' }) : [] }
    }),
  )

/** A scope for each case; the decision is what is done next. */
function helpdesk(directory: string): Input {
  const cases = new Map<string, { activity: string; at: number }[]>()
  for (const line of lines(directory, 'helpdesk.csv').slice(1)) {
    const [id = '', activity = '', time = ''] = line.split(',')
    cases.set(id, [...(cases.get(id) ?? []), { activity, at: Date.parse(`${time.replace(' ', 'T')}Z`) }])
  }
  const items = [...cases].flatMap(([id, steps]) => {
    const events = steps.map(({ activity, at }, step) =>
      eventOf({ type: `did.${activity}`, source: `case:${id}`, at, fields: { activity } }, `c${id}-${step}`),
    )
    const times = steps.map(({ at }) => at)
    return steps.map(({ at }, step): Item => ({
      id: `c${id}-${step}`,
      at,
      source: `case:${id}`,
      saw: sawOf(events.slice(0, step + 1), times.slice(0, step + 1), 0),
      label: tool('next', { activity: steps[step + 1]?.activity ?? 'none' }),
    }))
  })
  return { name: 'helpdesk', items: items.sort((one, other) => one.at - other.at), trusted: new Set() }
}

/** From the middle on two intents are routed the other way round. */
function changed(directory: string): Input {
  const { items, trusted } = snips(directory)
  const key = name('intent')
  const swap: Record<string, string> = { PlayMusic: 'AddToPlaylist', AddToPlaylist: 'PlayMusic' }
  return {
    name: 'SNIPS, changed policy',
    trusted,
    items: items.map((item, index) => {
      const intent = item.label[0]?.input[key]
      return index < items.length / 2 || typeof intent !== 'string' || !(intent in swap)
        ? item
        : { ...item, label: tool('route', { intent: swap[intent] ?? '' }) }
    }),
  }
}

/** A public table. `shifts`: from the middle on, the two most frequent labels change places. */
const table =
  (named: string, shifts: boolean) =>
  (directory: string): Input => {
    const { rows } = rowsOf(named, directory, 'real')
    const items = rows.map(({ saw, own }, index): Item => {
      const label = shifts && index >= rows.length / 2 && own < 2 ? 1 - own : own
      return { id: `${named}-${index}`, at: index * 1000, source: named, saw, label: label === 0 ? [] : tool(`t${label}`, {}) }
    })
    return {
      name: shifts ? `${named}, shifted` : named,
      items,
      trusted: new Set([named, ...items.slice(0, 1).map(({ saw }) => saw.event.source)]),
    }
  }

export const inputs: Record<string, (directory: string) => Input> = {
  ...Object.fromEntries(
    tableNames.flatMap((named) => [
      [named, table(named, false)],
      [`${named}-shifted`, table(named, true)],
    ]),
  ),
  ssh,
  bursts,
  hdfs,
  snips,
  sms,
  helpdesk,
  coin,
  changed,
  'snips-calls': snipsCalls,
  talk,
}
