import { backoff, pauses } from '../base/backoff.ts'
import { pause, withDeadline } from '../base/deadline.ts'
import { messageOf } from '../base/error-text.ts'
import { warn } from '../base/warn.ts'
import type { LogEntry } from '../contract/log-entry.ts'
import { otlpRequest, otlpSpan } from '../traces/spans/otlp.ts'
import { isWanted } from '../traces/ids.ts'
import type { OtlpTarget } from '../traces/otlp-target.ts'
import { SpanBuffer, type EndedSpan } from '../traces/spans/span-buffer.ts'
import type { Database } from '../kernel/unit.ts'
import type { Alarm } from '../kernel/alarm.ts'
import { retryAfterMs } from '../base/faults.ts'
import { parseJson } from '../base/check-json.ts'
import { limitBody, responseOf } from './response-body.ts'

/** By OTLP's specification: no other status is retried. */
const RETRIED = new Set([429, 502, 503, 504])
const LONGEST_WAIT_MS = 600_000
const MOST_BYTES = 64_000
const LONGEST_TEXT = 500

/** `rejected`: spans of the request that the collector did not take, for good. */
type SpanAnswer = { retry: true; after_ms: number; error: string } | { retry: false; rejected: number; error: string | null }

type SendSpansParts = { target: OtlpTarget; fetch: typeof fetch; now: () => number }

/** Sends one request to the collector. */
async function sendSpans(body: string, { target, fetch, now }: SendSpansParts): Promise<SpanAnswer> {
  const { url, headers, timeout_ms } = target
  const send = async (signal: AbortSignal) => {
    // A redirect would send the headers to another host.
    const response = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal })
    return { response, text: await limitBody(response, responseOf(MOST_BYTES)).text() }
  }
  try {
    const { response, text } = await withDeadline(send, { timeout_ms, what: 'the collector' })
    return answerOf(response, text, now())
  } catch (error) {
    return { retry: true, after_ms: 0, error: messageOf(error).slice(0, LONGEST_TEXT) }
  }
}

function answerOf({ status, ok, headers }: Response, text: string, now: number): SpanAnswer {
  if (ok) return partOf(text)
  const error = `the collector answered ${status}: ${text.slice(0, LONGEST_TEXT)}`
  if (!RETRIED.has(status)) return { retry: false, rejected: Number.POSITIVE_INFINITY, error }
  return { retry: true, after_ms: Math.min(retryAfterMs(headers.get('retry-after'), now) ?? 0, LONGEST_WAIT_MS), error }
}

/** A successful answer may reject some of the spans. */
function partOf(text: string): SpanAnswer {
  const parsed = parseJson(text)
  const answer = parsed.ok ? (parsed.value as { partialSuccess?: { rejectedSpans?: unknown; errorMessage?: unknown } } | null) : null
  const { rejectedSpans = 0, errorMessage = '' } = answer?.partialSuccess ?? {}
  const rejected = Number(rejectedSpans)
  if (!(rejected > 0)) return { retry: false, rejected: 0, error: null }
  return { retry: false, rejected, error: `the collector rejected ${rejected} spans: ${String(errorMessage).slice(0, LONGEST_TEXT)}` }
}

/** Entries are gathered for this long before they are exported. */
const GATHER_MS = 800
/** Entries and bytes of the log that are read at a time. */
const MOST_ENTRIES = 500
const MOST_READ_BYTES = 1_000_000
/** Spans and characters of one request. */
const MOST_SPANS = 512
const MOST_CHARACTERS = 1_000_000
/** While the collector is unavailable: entries of the log that wait, and their age. */
const MOST_WAITING = 20_000
const MOST_AGE_MS = 3_600_000
/** Entries before the mark that are read again after a restart, for spans that had not ended. */
const MOST_READ_AGAIN = 20_000

/** The state key of the log's `seq` up to which spans were exported, and of the counters. */
const KEY = 'spans'
/** `since`: the first entry of a span that had not ended at the mark. */
type Stored = { mark: number; since: number | null; exported: number; dropped: number }

type Request = { body: string; spans: number }
/** Requests with the spans that ended in a part of the log. `at`: the time of its last entry. */
type Batch = { requests: Request[]; reaches: number; since: number | null; at: number }

/** `text`: JSON of an entry. `before` is left out of what is read. */
type SpanLog = {
  readonly last: number
  read(after: number, limit: number, before?: number, most_bytes?: number): readonly { seq: number; text: string }[]
}

type SpanExportParts = {
  target: OtlpTarget
  scope: string
  database: Pick<Database, 'read' | 'write' | 'first'>
  log: SpanLog
  alarm: Pick<Alarm, 'cover' | 'rearm'>
  fetch: typeof fetch
  now: () => number
}

/**
 * Exports the spans of a scope to a collector (OTLP/HTTP, JSON). It needs no queue: the log after a
 * mark has what was not exported. Nothing waits for the collector. If the process dies before the
 * mark is written, spans are sent again; a collector recognizes them by their ids.
 */
export class SpanExport {
  readonly name = 'spans'
  /** It reads the log up to here itself, when it exports. */
  readonly from: number
  readonly #parts: SpanExportParts
  #buffer = new SpanBuffer()
  #stored: Stored
  /** The log was read up to here; null until the entries before the mark were read again. */
  #read: number | null = null
  #batch: Batch | null = null
  #due: number | null
  #running = false
  #failures = 0
  #error: string | null = null

  constructor(parts: SpanExportParts) {
    this.#parts = parts
    const { database, log, now } = parts
    this.#stored = database.read<Stored | null>(KEY, null) ?? { mark: this.#firstMark(), since: null, exported: 0, dropped: 0 }
    this.#due = this.waiting > 0 ? now() : null
    this.from = log.last
  }

  follow(): void {
    this.#due ??= this.#parts.now() + GATHER_MS
  }

  /** A scope that had a log before it had a collector exports the last hour. */
  #firstMark(): number {
    const { database, now } = this.#parts
    return database.first<{ seq: number | null }>('SELECT max(seq) AS seq FROM log WHERE at < ?', now() - MOST_AGE_MS)?.seq ?? 0
  }

  /** Number of log entries that were not exported. */
  get waiting(): number {
    return this.#parts.log.last - this.#stored.mark
  }

  get state() {
    const { exported, dropped } = this.#stored
    return { waiting: this.waiting, exported, dropped, last_error: this.#error }
  }

  due(): number | null {
    if (this.#running) return null
    const times = [this.#due, this.#buffer.due].filter((at) => at !== null)
    return times.length === 0 ? null : Math.min(...times)
  }

  /** Begins to export what is due. Does not wait for the collector. */
  start(): void {
    const { alarm, now } = this.#parts
    const due = this.due()
    // With the changes that are replicated now.
    const soon = this.#failures === 0 ? GATHER_MS : 0
    if (due === null || due > now() + soon) return
    this.#running = true
    const work = this.#run().finally(() => {
      this.#running = false
      alarm.rearm()
    })
    void alarm.cover(work)
  }

  async #run(): Promise<void> {
    this.#due = null
    try {
      while ((this.#batch ??= this.#next())) {
        const { pause_ms } = await this.#send(this.#batch)
        if (pause_ms !== null) return await this.#failed(pause_ms)
        this.#end(this.#batch)
        await pause(1, {})
      }
      if (this.waiting > 0) this.#due = this.#parts.now() + GATHER_MS
    } catch (error) {
      warn({ message: 'failed to export spans; will retry', scope: this.#parts.scope, error })
      this.#error = messageOf(error)
      await this.#failed(0)
    }
  }

  /** Sends the requests that are left of a batch. */
  async #send(batch: Batch): Promise<{ pause_ms: number | null }> {
    for (let [request] = batch.requests; request; [request] = batch.requests) {
      const answer = await sendSpans(request.body, this.#parts)
      if (answer.retry) {
        this.#error = answer.error
        return { pause_ms: answer.after_ms }
      }
      this.#failures = 0
      this.#count(request, answer)
      batch.requests.shift()
    }
    return { pause_ms: null }
  }

  #count({ spans }: Request, { rejected, error }: Exclude<SpanAnswer, { retry: true }>): void {
    const lost = Math.min(spans, rejected)
    this.#stored.exported += spans - lost
    this.#stored.dropped += lost
    this.#error = error
    if (error !== null) warn({ message: 'the collector rejected spans', scope: this.#parts.scope, spans: lost, error })
  }

  #end({ reaches, since }: Batch): void {
    this.#batch = null
    this.#stored = { ...this.#stored, mark: reaches, since }
    this.#parts.database.write(KEY, this.#stored)
  }

  /** Retries after a pause, and drops the oldest batches of a collector that is away for long. */
  async #failed(after_ms: number): Promise<void> {
    const { log, now, scope } = this.#parts
    const before = this.#stored.dropped
    for (let batch = this.#batch; batch; batch = this.#batch) {
      if (log.last - batch.reaches <= MOST_WAITING && now() - batch.at <= MOST_AGE_MS) break
      this.#stored.dropped += batch.requests.reduce((sum, { spans }) => sum + spans, 0)
      this.#end(batch)
      this.#batch = this.#next()
      await pause(1, {})
    }
    this.#failures += 1
    const pause_ms = Math.max(after_ms, backoff(pauses.spans, this.#failures))
    const dropped = this.#stored.dropped - before
    warn({ message: 'failed to export spans; will retry', scope, pause_ms, dropped, error: this.#error })
    this.#due = now() + pause_ms
  }

  /** The next part of the log as requests; null at its end. */
  #next(): Batch | null {
    const { log, now } = this.#parts
    const after = (this.#read ??= this.#readAgain())
    const entries = log.read(after, MOST_ENTRIES, undefined, MOST_READ_BYTES)
    if (entries.length === 0 && (this.#buffer.due ?? Number.POSITIVE_INFINITY) > now()) return null
    // Retention deletes entries that have waited for too long.
    this.#stored.dropped += Math.max(0, (entries[0]?.seq ?? after + 1) - after - 1)
    const at = this.#gather(entries) ?? now()
    this.#read = entries.at(-1)?.seq ?? after
    const { parts, lost } = this.#buffer.take(now())
    this.#stored.dropped += lost
    const { since } = this.#buffer
    return { requests: this.#requests(parts.flatMap((part) => this.#sampled(part))), reaches: this.#read, since, at }
  }

  /** Fills the buffer with the spans that had not ended at the mark. */
  #readAgain(): number {
    const { log, now } = this.#parts
    const { mark, since } = this.#stored
    if (since === null) return mark
    let after = Math.max(since, mark - MOST_READ_AGAIN) - 1
    while (after < mark) {
      const entries = log.read(after, MOST_ENTRIES, mark + 1, MOST_READ_BYTES)
      if (entries.length === 0) break
      this.#gather(entries)
      after = entries.at(-1)?.seq ?? mark
    }
    // These were exported.
    this.#buffer.take(now())
    return mark
  }

  /** Returns the time of the last entry. */
  #gather(entries: readonly { seq: number; text: string }[]): number | null {
    let at: number | null = null
    for (const { text } of entries) {
      const entry = JSON.parse(text) as LogEntry
      at = Date.parse(entry.at)
      // The log of a process has the parts of its entries, too.
      if ((entry.kind as string) === 'part') continue
      try {
        this.#buffer.add({ scope: this.#parts.scope, entry }, text.length)
      } catch (error) {
        // An entry of another version must not stop the export.
        warn({ message: 'failed to read a log entry as a span', scope: this.#parts.scope, seq: entry.seq, error })
        this.#stored.dropped += 1
      }
    }
    return at
  }

  /** A part of a trace with an error is exported even if the trace is not sampled. */
  #sampled(spans: EndedSpan[]): EndedSpan[] {
    const { ratio } = this.#parts.target
    return spans.some(({ trace_id, status, marks }) => status === 'error' || isWanted(trace_id, marks, ratio)) ? spans : []
  }

  #requests(spans: readonly EndedSpan[]): Request[] {
    const requests: Request[] = []
    let texts: string[] = []
    let characters = 0
    const close = () => {
      if (texts.length > 0) requests.push({ body: otlpRequest(texts, this.#parts.target.resource), spans: texts.length })
      ;[texts, characters] = [[], 0]
    }
    for (const span of spans) {
      const text = otlpSpan(span)
      if (texts.length >= MOST_SPANS || characters + text.length > MOST_CHARACTERS) close()
      texts.push(text)
      characters += text.length
    }
    close()
    return requests
  }
}
