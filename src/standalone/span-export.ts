import { SpanExport } from '../tools/span-export.ts'
import { otlpTargetOf, type OtlpTarget, type OtlpVariables } from '../traces/otlp-target.ts'
import type { LogStore } from './rows.ts'
import type { Storage } from './storage.ts'

type Parts = { project: string; otlp: OtlpVariables; now: () => number }
const FIRST = { since: null, exported: 0, dropped: 0 }

/** Exports the spans of a process's log to a collector, as a scope does. */
export class ProcessSpans {
  readonly log: LogStore
  readonly #spans: SpanExport
  readonly #now: () => number
  #timer: ReturnType<typeof setTimeout> | undefined
  #work: Promise<void> = Promise.resolve()

  private constructor({ log, control }: Storage, { project, now }: Parts, target: OtlpTarget) {
    const { 'cloud.provider': _provider, 'cloud.platform': _platform, ...resource } = target.resource
    let last = log.last()
    // The log before the first export has no collector.
    const database = { read: <Value>(key: string) => control.get<Value>(key) ?? ({ ...FIRST, mark: last } as Value) }
    this.#now = now
    this.#spans = new SpanExport({
      target: { ...target, resource: { ...resource, ...(resource['service.name'] === 'reflex' && { 'service.name': project }) } },
      scope: project,
      database: { ...database, write: (key, value) => control.put(key, value), first: () => undefined },
      log: {
        get last() {
          return last
        },
        read: (after, limit, before) =>
          log
            .entries({ after, limit })
            .flatMap((entry) => (before === undefined || entry.seq < before ? [{ seq: entry.seq, text: JSON.stringify(entry) }] : [])),
      },
      alarm: {
        cover: (work) => {
          this.#work = work.then(() => undefined)
          return this.#work
        },
        rearm: () => this.#arm(),
      },
      fetch,
      now,
    })
    this.log = {
      append: (entry) => {
        log.append(entry)
        last = log.last()
        this.#spans.follow()
        this.#arm()
      },
      entries: (query) => log.entries(query),
      last: () => log.last(),
    }
  }

  /** Null without a collector. */
  static of(storage: Storage, parts: Parts): ProcessSpans | null {
    const target = otlpTargetOf(parts.otlp)
    return target && new ProcessSpans(storage, parts, target)
  }

  /** Sends what waits, as far as the collector answers. */
  async flush(): Promise<void> {
    do {
      this.#spans.start()
      await this.#work
    } while (this.#spans.state.waiting > 0 && this.#spans.state.last_error === null)
  }

  /** A timer that waits keeps no process alive. */
  #arm(): void {
    clearTimeout(this.#timer)
    const due = this.#spans.due()
    if (due === null) return
    this.#timer = setTimeout(() => this.#spans.start(), Math.max(0, due - this.#now()))
    if (typeof this.#timer === 'object') this.#timer.unref()
  }
}
