import type { Command } from 'commander'
import { judge, eventFlags, find, list, replay as replayed } from '../../../src/contract/operations/events.ts'
import { addOperation, optionOf } from '../operation.ts'
import { addSend } from './send.ts'
import { pipeline } from 'node:stream/promises'
import { setTimeout as wait } from 'node:timers/promises'
import type { AnswerOf } from '../../../src/contract/operation.ts'
import { refused } from '../../lib/api.ts'
import type { Paint } from '../../lib/paint.ts'
import { askPages, requestOf } from '../ask.ts'
import { handler, type Session } from '../session.ts'
import { escaped, safeJson, written } from '../table.ts'
import { timeOption } from '../values.ts'

type Filter = { scope?: string; type?: string; status?: string; partial?: boolean; since?: string; until?: string }

function addList(events: Command): void {
  addOperation(events, list)
  addOperation(events, find)
  const tailed = events.command('tail').description('Show events as they come, until Ctrl-C').action(handler(tail))
  for (const flag of eventFlags) tailed.addOption(optionOf(flag))
  events
    .command('replay')
    .description('Print the retained events as JSON lines, oldest first')
    .option('--scope <scope>', 'of one scope')
    .option('--types <types>', 'of these types, separated by commas')
    .addOption(timeOption('since', 'at or after a time'))
    .addOption(timeOption('until', 'before a time'))
    .action(handler(replay))
}

type EventListing = AnswerOf<typeof list.answers>['items'][number]

const POLL_MS = 1000
/** The list is about a second behind the scopes, and clocks differ. */
const WINDOW_MS = 60_000

async function tail({ api, print, signal }: Session, filter: Filter): Promise<void> {
  /** The events of the window, with the time when they were first seen: each is shown once. */
  const seen = new Map<string, number>()
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    const now = Date.now()
    const fields = { ...filter, since: new Date(now - WINDOW_MS).toISOString() }
    const { items } = await askPages({ api, signal }, list, { fields, limit: 10_000, most: 1000 })
    for (const event of items.toReversed()) {
      if (seen.has(nameOf(event))) continue
      seen.set(nameOf(event), now)
      if (!isFirst) print.item(event, (paint) => lineOf(event, paint))
    }
    for (const [name, at] of seen) if (at < now - 5 * WINDOW_MS) seen.delete(name)
    await wait(POLL_MS, undefined, { signal })
  }
}

const nameOf = ({ scope, id }: EventListing): string => `${scope} ${id}`

function lineOf({ timestamp, scope, type, id, event }: EventListing, paint: Paint): string {
  const { id: _id, type: _type, scope: _scope, source: _source, timestamp: _time, meta: _meta, ...own } = event
  return `${paint('dim', written(timestamp))}  ${paint('cyan', written(scope))}  ${written(type)}  ${written(id)}  ${safeJson(own)}`
}

type Span = { scope?: string; types?: string; since?: string; until?: string }

async function replay({ api, signal }: Session, { since, until, ...query }: Span): Promise<void> {
  const { address: path } = requestOf(replayed, { fields: { ...query, start: since, end: until } })
  const response = await api().open(path, {}, signal)
  if (!response.ok || !response.body) throw await refused(response, `GET ${path}`)
  const decoder = new TextDecoder()
  await pipeline(
    response.body,
    async function* (chunks: AsyncIterable<Uint8Array>) {
      for await (const chunk of chunks) yield escaped(decoder.decode(chunk, { stream: true }))
    },
    process.stdout,
    { end: false, signal },
  )
}

const FEEDBACK_HELP = `
What a person says counts in the certificate of the reflex that decided, and what is learned takes it
instead of the decision. Nothing that was done changes.

Examples:
  reflex events feedback shop/berlin 0199… --right
  reflex events feedback shop/berlin 0199… --wrong --reply "We open at nine." --reason "it is summer"`

export function addEvents(program: Command): void {
  const events = program.command('events').description('Send, list, follow and judge events')
  addSend(events)
  addList(events)
  addOperation(events, judge).addHelpText('after', FEEDBACK_HELP)
}
