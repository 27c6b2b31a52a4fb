import type { Log } from './log.ts'

const PAGE = 200
const KEEP_ALIVE_MS = 15_000

/**
 * The log as server-sent events. Each reader has a cursor and takes the next page when it has room: a slow one costs nothing but its own delay, and one that
 * comes back goes on behind its `Last-Event-ID`.
 */
export class Streams {
  readonly #log: Log
  readonly #waiting = new Set<() => void>()

  constructor(log: Log) {
    this.#log = log
    log.listen(() => {
      for (const wake of this.#waiting) wake()
    })
  }

  open(after: number | null): Response {
    const encoder = new TextEncoder()
    let cursor = after ?? this.#log.last
    let open = true
    const stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => controller.enqueue(encoder.encode(`: events of the log after ${cursor}\nretry: 1000\n\n`)),
        pull: async (controller) => {
          const entries = this.#log.read(cursor, PAGE)
          if (entries.length === 0 && !(await this.#written())) return controller.enqueue(encoder.encode(': still here\n\n'))
          const fresh = entries.length > 0 ? entries : this.#log.read(cursor, PAGE)
          if (!open) return
          cursor = fresh.at(-1)?.seq ?? cursor
          controller.enqueue(encoder.encode(fresh.map(({ seq, text }) => `id: ${seq}\nevent: log\ndata: ${text}\n\n`).join('')))
        },
        cancel: () => {
          open = false
        },
      },
      { highWaterMark: 1 },
    )
    return new Response(stream, {
      headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' },
    })
  }

  /** True when something was written, false when it is time to show the line is alive. */
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
