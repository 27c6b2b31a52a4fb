import { limits } from '../../base/limits.ts'
import type { Connect } from '../../contract/scope-api.ts'
import type { Log } from '../log/log.ts'
import type { KeyCheck } from './key-check.ts'

const PAGE = 200
const KEEP_ALIVE_MS = 15_000
/** Drop a reader that takes nothing for this long. */
const PATIENCE_MS = 60_000
const CHECK_MS = 10_000

/** `given_at` is when the reader got the chunk that it has not taken yet. */
type Reader = { key_id: string; given_at: number | null; end: () => void; drop: () => void }
type Parts = { log: Log; key_check: Pick<KeyCheck, 'used' | 'watch'>; now: () => number }

/**
 * The log as server-sent events. Each reader has a cursor and takes pages at its own pace, and
 * resumes after its `Last-Event-ID`. A reader that takes nothing for a minute is dropped: the
 * platform does not always report that it has gone.
 */
export class Streams {
  readonly #parts: Parts
  readonly #waiting = new Set<() => void>()
  readonly #readers = new Set<Reader>()
  #watching = false

  constructor(parts: Parts) {
    this.#parts = parts
    parts.key_check.watch(this)
    parts.log.listen(() => {
      for (const wake of this.#waiting) wake()
    })
  }

  get keys(): string[] {
    return Array.from(this.#readers, ({ key_id }) => key_id)
  }

  open({ after, key_id }: Pick<Connect, 'after' | 'key_id'>): Response {
    if (this.#readers.size >= limits.streams_per_scope) return new Response(null, { status: 503 })
    const encoder = new TextEncoder()
    let cursor = after ?? this.#parts.log.last
    const reader: Reader = { key_id, given_at: this.#parts.now(), end: () => {}, drop: () => {} }
    const stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          reader.end = () => {
            try {
              controller.enqueue(encoder.encode(': the key that opened this stream was deleted\n\n'))
              controller.close()
            } catch {
              // The stream is broken already.
            }
          }
          reader.drop = () => controller.error(new Error('nothing was read from this stream for a minute'))
          this.#readers.add(reader)
          this.#watch()
          // An id without data is not an event; a reader that gets nothing else resumes after it.
          controller.enqueue(encoder.encode(`: events of the log after ${cursor}\nretry: 1000\nid: ${cursor}\n\n`))
        },
        pull: async (controller) => {
          this.#parts.key_check.used()
          reader.given_at = null
          const entries = this.#page(cursor)
          const written = entries.length > 0 || (await this.#written())
          if (!this.#readers.has(reader)) return
          reader.given_at = this.#parts.now()
          if (!written) return controller.enqueue(encoder.encode(': still here\n\n'))
          const fresh = entries.length > 0 ? entries : this.#page(cursor)
          cursor = fresh.at(-1)?.seq ?? cursor
          controller.enqueue(encoder.encode(fresh.map(({ seq, text }) => `id: ${seq}\nevent: log\ndata: ${text}\n\n`).join('')))
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

  /** Pages are small because each reader buffers one. */
  #page(cursor: number) {
    return this.#parts.log.read(cursor, PAGE, undefined, limits.stream_page_bytes)
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
  #written(): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const wake = () => resolve(true)
    const timer = setTimeout(() => resolve(false), KEEP_ALIVE_MS)
    this.#waiting.add(wake)
    return promise.finally(() => {
      clearTimeout(timer)
      this.#waiting.delete(wake)
    })
  }
}
