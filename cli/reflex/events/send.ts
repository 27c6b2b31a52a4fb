import { resolve } from 'node:path'
import { Option, type Command } from 'commander'
import type { EventOutcome, EventReceipt, Outcome, Waiting } from '../../../src/contract/event-record.ts'
import { batches } from '../../lib/batches.ts'
import { CliError, UsageError } from '../../lib/cli-error.ts'
import { isTerminal, type Paint } from '../../lib/paint.ts'
import { count, counted } from '../../lib/text.ts'
import { requestOf } from '../ask.ts'
import { statePath } from '../profiles.ts'
import { handler, type ExitOutcome, type Session } from '../session.ts'
import { jsonObject, wholeNumber } from '../values.ts'
import { readFiles, type SentEvent } from './read-events.ts'
import { advanced, confirmed, freshPlace, memoryOf, noMemory, type Memory, type SendPosition } from './resume.ts'
import { publish, publishInScope, statusColour } from '../../../src/contract/operations/events.ts'
import { linesOf, safeJson, written } from '../table.ts'

/** The status, then the result or the reason. */
function outcomeLines(event: EventOutcome | (EventReceipt & { waiting?: Waiting | null }), paint: Paint): string[] {
  const { id, status, waiting } = event
  const { outcome, error } = 'outcome' in event ? event : { outcome: null, error: null }
  const colour = statusColour(status)
  const head = `${colour ? paint(colour, written(status)) : written(status)}  ${written(id)}${outcome ? `  by ${deciderOf(outcome)}` : ''}`
  const reason = error ?? (outcome && 'reason' in outcome ? outcome.reason : null) ?? waiting?.detail ?? null
  const result = outcome?.by === 'turn' ? outcome.result : outcome?.by === 'reflex' ? outcome.action : undefined
  const text = typeof result === 'string' ? result : result === undefined || result === null ? null : safeJson(result)
  return [head, ...[reason, text].flatMap((text) => (text === null ? [] : linesOf(text).map((line) => `  ${line}`)))]
}

const deciderOf = (outcome: Outcome): string =>
  outcome.by === 'reflex' ? `reflex ${written(outcome.reflex_id)}@${outcome.version}` : outcome.by === 'turn' ? 'a turn' : outcome.by

type SendOptions = { scope?: string; type?: string; data?: string[]; wait?: true; timeout: number; idPrefix?: string }
/** Outcomes with `--wait`. */
type SendAnswer = { accepted: number; events: (EventReceipt | EventOutcome)[] }

const HELP = `
Files hold JSON: one event a line, one event, or an array of events; - is standard input. An event
without an id receives one. If a sending of files is interrupted, the same command resumes it, and
no event is there twice. For standard input, name the ids with --id-prefix to repeat it safely.

Examples:
  reflex events send events.jsonl
  journalctl -o json -f | jq -c '{line: .MESSAGE}' | reflex events send --scope ssh/web --type log.line
  reflex events send --scope chat/me --data '{"type":"ws.message","connection_id":"me","content":"hello"}' --wait`

export function addSend(events: Command): void {
  events
    .command('send [files...]')
    .description('Send events from files or standard input')
    .option('--scope <scope>', 'the scope of events that have none')
    .option('--type <type>', 'the type of events that have none')
    .option('--data <json...>', 'an event, in place of files')
    .option('--wait', 'wait for the outcome of the events and show it (needs --scope); exit with 1 if one failed')
    .addOption(new Option('--timeout <ms>', 'how long to wait for each batch').default(10_000).argParser(wholeNumber))
    .option('--id-prefix <text>', 'begin the ids of events that have none with this text: sent again, they are duplicates')
    .addHelpText('after', HELP)
    .action(handler(send))
}

async function send(session: Session, files: string[], options: SendOptions): Promise<ExitOutcome> {
  const { print } = session
  if (options.wait && options.scope === undefined) throw new UsageError('--wait needs --scope.')
  const source = sourceOf(files, options, session.signal)
  const memory = source.again ? memoryOf(statePath(process.env), [session.api().url, options.scope ?? '', ...source.names]) : noMemory
  const begin = memory.stored ? await confirmed(memory.stored, source.events()) : freshPlace(options.idPrefix)
  if (begin.sent > 0) print.note(`Resuming after the first ${counted(begin.sent, 'event')}, which were sent before.`)
  const result = await sendAll(session, { events: source.events(), begin, memory, options })
  if (session.signal.aborted) {
    const how = source.again ? 'Run the same command again to continue.' : 'Standard input cannot be resumed; see --id-prefix.'
    const unsure = result.unsure > 0 ? `; ${count(result.unsure)} more may have been accepted` : ''
    return print.note(`Stopped after ${counted(result.sent, 'event')}${unsure}. ${how}`)
  }
  memory.forget()
  const { sent, accepted, failed } = result
  const duplicates = sent - begin.sent - accepted
  if (options.wait) return failed > 0 ? 1 : undefined
  print.result({ sent: sent - begin.sent, accepted, duplicates }, () => [
    `Sent ${counted(sent - begin.sent, 'event')}${duplicates > 0 ? `; ${count(duplicates)} of them were there already` : ''}.`,
  ])
}

type Source = { names: string[]; again: boolean; events: () => AsyncGenerator<SentEvent> }

/** `again`: the events can be read twice. */
function sourceOf(files: string[], { data, idPrefix }: SendOptions, signal: AbortSignal): Source {
  if (data !== undefined && files.length > 0) throw new UsageError('Name files or --data, not both.')
  if (data !== undefined) return { names: [], again: false, events: () => parsedData(data) }
  if (files.length === 0 && process.stdin.isTTY)
    throw new UsageError('There is nothing to send.', 'Name files, pipe events in, or pass one with --data; see reflex events send --help.')
  const names = files.length === 0 ? ['-'] : files
  const again = idPrefix === undefined && !names.includes('-')
  return { names: names.map((name) => (name === '-' ? name : resolve(name))), again, events: () => readFiles(names, signal) }
}

async function* parsedData(texts: readonly string[]): AsyncGenerator<SentEvent> {
  for (const text of texts) yield jsonObject(text, '--data')
}

/** Lines of a log that is followed are sent as they come. */
const LINGER_MS = 200

type Sending = { events: AsyncGenerator<SentEvent>; begin: SendPosition; memory: Memory; options: SendOptions }
/** `unsure`: events on their way when the sending was stopped. */
type Sent = { sent: number; accepted: number; failed: number; unsure: number }

async function sendAll(session: Session, { events, begin, memory, options }: Sending): Promise<Sent> {
  const { print, signal } = session
  const show = progress(begin.sent)
  let place = begin
  let accepted = 0
  let failed = 0
  let unsure = 0
  try {
    for await (const batch of batches(numbered(events, begin), { linger_ms: LINGER_MS })) {
      const bodies = batch.map(({ number, event }) => completed(event, number, { prefix: begin.prefix, ...options }))
      unsure = batch.length
      const answer = await post(session, bodies, options).catch((error: unknown) =>
        notSent(error, { batch, place, again: memory !== noMemory }),
      )
      accepted += answer.accepted
      unsure = 0
      for (const { event } of batch) place = advanced(place, event)
      memory.save(place)
      show(place.sent)
      if (!options.wait) continue
      for (const event of answer.events) {
        if (!isSuccess(event)) failed += 1
        print.item(event, (paint) => outcomeLines(event, paint).join('\n'))
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    show(null)
    // After a failure its writer may wait forever.
    process.stdin.destroy()
  }
  return { sent: place.sent, accepted, failed, unsure }
}

/** The events after those that were sent. Numbers count from 1. */
async function* numbered(events: AsyncGenerator<SentEvent>, { sent }: SendPosition): AsyncGenerator<{ number: number; event: SentEvent }> {
  let number = 0
  for await (const event of events) {
    number += 1
    if (number > sent) yield { number, event }
  }
}

type Defaults = { prefix: string; scope?: string; type?: string }

export function completed(event: SentEvent, number: number, { prefix, scope, type }: Defaults): SentEvent {
  return { id: `${prefix}-${number}`, ...(scope !== undefined && { scope }), ...(type !== undefined && { type }), ...event }
}

function post({ api, signal }: Session, body: SentEvent[], { wait, scope, timeout }: SendOptions): Promise<SendAnswer> {
  const direct = { path: [scope ?? ''], fields: { wait: 'outcome', timeout_ms: timeout } }
  const { address } = wait ? requestOf(publishInScope, direct) : requestOf(publish, {})
  return api().json<SendAnswer>(address, { method: 'POST', body, signal })
}

type Unsent = { batch: readonly { number: number }[]; place: SendPosition; again: boolean }

/** Says where in the input the refused batch is: the server counts within the batch. */
function notSent(error: unknown, { batch, place: { sent }, again }: Unsent): never {
  if (!(error instanceof CliError)) throw error
  const first = batch[0]?.number ?? 0
  const last = batch.at(-1)?.number ?? 0
  const which = first === last ? `Event ${first}` : `The batch of the events ${first} to ${last}`
  const next = again ? `${counted(sent, 'event')} before it were sent; run the same command again to continue there.` : null
  throw new CliError(
    `${which} was not accepted. ${error.message}`,
    [error.hint, next].filter((hint) => hint !== null).join('\n') || null,
    error,
  )
}

const isSuccess = ({ status }: { status: string }): boolean => status === 'completed' || status === 'ignored'

/** Shows on a terminal how far it is; null clears the line. */
function progress(begin: number): (sent: number | null) => void {
  const { stderr } = process
  if (!isTerminal(stderr)) return () => {}
  const started = performance.now()
  return (sent) => {
    const rate = sent === null ? 0 : ((sent - begin) / (performance.now() - started)) * 1000
    stderr.write(`\r\u001b[2K${sent === null ? '' : `${counted(sent, 'event')} sent, ${count(rate)}/s`}`)
  }
}
