import { withinTime } from '../../base/deadline.ts'
import { limits } from '../../base/limits.ts'
import type { AnswerPart, Connect } from '../../contract/scope-api.ts'
import type { Log } from '../log/log.ts'
import { placeIn, type KeyCheck } from './sockets.ts'

const PAGE = 200
/** Characters of answers that wait for one reader. Others are dropped: the log has the answer. */
const MOST_HELD = 65_536
const KEEP_ALIVE_MS = 15_000
/** Drop a reader that takes nothing for this long. */
const PATIENCE_MS = 60_000
const CHECK_MS = 10_000

/** `given_at` is when the reader got the chunk that it has not taken yet. */
type Reader = {
  key_id: string
  cursor: number
  given_at: number | null
  /** Parts of answers that it has not taken; null if it did not ask for them. */
  held: Held[] | null
  wake: () => void
  end: () => void
  drop: () => void
}
/** `after`: the last entry of the log when it was made. */
type Held = AnswerPart & { after: number }
type StreamsParts = { log: Log; key_check: Pick<KeyCheck, 'used' | 'watch'>; now: () => number }

/**
 * The log as server-sent events. Each reader has a cursor and takes pages at its own pace, and
 * resumes after its `Last-Event-ID`. A reader that takes nothing for a minute is dropped: the
 * platform does not always report that it has gone.
 */
export class Streams {
  readonly #parts: StreamsParts
  readonly #readers = new Set<Reader>()
  #watching = false
  #listens = false

  constructor(parts: StreamsParts) {
    this.#parts = parts
    parts.key_check.watch(this)
  }

  /** From the first reader on, which an object rarely has. */
  #listen(): void {
    if (this.#listens) return
    this.#listens = true
    this.#parts.log.listen(() => {
      for (const { wake } of this.#readers) wake()
    })
  }

  get keys(): string[] {
    return Array.from(this.#readers, ({ key_id }) => key_id)
  }

  /** `so_far`: the answer in progress, for a reader that takes parts of answers. */
  open({ after, key_id, parts }: Pick<Connect, 'after' | 'key_id' | 'parts'>, so_far: AnswerPart | null = null): Response {
    if (this.#readers.size >= limits.streams_per_scope) return new Response(null, { status: 503 })
    const encoder = new TextEncoder()
    const { last } = this.#parts.log
    const cursor = placeIn(after ?? last, last)
    const held = parts === true ? (so_far ? [{ ...so_far, after: last }] : []) : null
    const reader: Reader = { key_id, cursor, given_at: this.#parts.now(), held, wake: () => {}, end: () => {}, drop: () => {} }
    const stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          reader.end = () => {
            try {
              controller.enqueue(encoder.encode(': the key that opened this stream was deleted or has expired\n\n'))
              controller.close()
            } catch {
              // The stream is broken already.
            }
          }
          reader.drop = () => controller.error(new Error('nothing was read from this stream for a minute'))
          this.#readers.add(reader)
          this.#listen()
          this.#watch()
          // An id without data is not an event; a reader that gets nothing else resumes after it.
          controller.enqueue(encoder.encode(`: events of the log after ${cursor}\nretry: 1000\nid: ${cursor}\n\n`))
        },
        pull: async (controller) => {
          this.#parts.key_check.used()
          reader.given_at = null
          const frames = this.#take(reader)
          const written = frames !== '' || (await this.#written(reader))
          if (!this.#readers.has(reader)) return
          reader.given_at = this.#parts.now()
          if (!written) return controller.enqueue(encoder.encode(': still here\n\n'))
          controller.enqueue(encoder.encode(frames || this.#take(reader)))
        },
        cancel: () => {
          this.#readers.delete(reader)
        },
      },
      { highWaterMark: 1 },
    )
    return new Response(stream, {
      headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' },
    })
  }

  end(keys: ReadonlySet<string>): void {
    for (const reader of this.#readers) {
      if (!keys.has(reader.key_id)) continue
      this.#readers.delete(reader)
      reader.end()
    }
  }

  /** Sends part of an answer to the readers that asked for parts. */
  part(part: AnswerPart): void {
    const after = this.#parts.log.last
    for (const { held, wake } of this.#readers) {
      if (held === null || lengthOf(held) + part.content.length > MOST_HELD) continue
      held.push({ ...part, after })
      wake()
    }
  }

  /** The next page of the log, with each part of an answer after the entries that preceded it. */
  #take(reader: Reader): string {
    // Pages are small because each reader buffers one.
    const entries = this.#parts.log.read(reader.cursor, PAGE, undefined, limits.stream_page_bytes)
    reader.cursor = entries.at(-1)?.seq ?? reader.cursor
    const frames = entries.map(({ seq, text }) => ({ seq, frame: `id: ${seq}\nevent: log\ndata: ${text}\n\n` }))
    const due = reader.held?.filter(({ after }) => after <= reader.cursor || entries.length === 0) ?? []
    reader.held?.splice(0, due.length)
    const parts = due.map(({ after, ...part }) => ({ seq: after, frame: `event: part\ndata: ${JSON.stringify(part)}\n\n` }))
    // The sort is stable: an entry comes before the parts that follow it.
    const all = parts.length === 0 ? frames : [...frames, ...parts].toSorted((one, other) => one.seq - other.seq)
    return all.map(({ frame }) => frame).join('')
  }

  /** Checks for readers that are gone for as long as there are readers. */
  #watch(): void {
    if (this.#watching || this.#readers.size === 0) return
    this.#watching = true
    setTimeout(() => {
      this.#watching = false
      this.#dropGone()
      this.#watch()
    }, CHECK_MS)
  }

  #dropGone(): void {
    for (const reader of this.#readers) {
      if (reader.given_at === null || this.#parts.now() - reader.given_at < PATIENCE_MS) continue
      this.#readers.delete(reader)
      reader.drop()
    }
  }

  /** True once something was written, false when a keep-alive comment is due. */
  async #written(reader: Reader): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<void>()
    reader.wake = resolve
    return (await withinTime(() => promise, { timeout_ms: KEEP_ALIVE_MS })).ended === 'done'
  }
}

const lengthOf = (held: readonly Held[]): number => held.reduce((sum, { content }) => sum + content.length, 0)
