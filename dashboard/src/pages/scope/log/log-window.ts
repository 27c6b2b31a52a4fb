import { signal } from '@preact/signals'
import type { LogEntry } from '../../../../../src/contract/log-entry.ts'
import { get, part, query, type Answer, type ApiProblem } from '../../../api/index.ts'
import { sentenceOf } from '../../../../../src/traces/entries/sentences.ts'
import { statusText } from '../../../ui/status.tsx'
import { duration } from '../../../ui/time.tsx'

/** The part of an entry that is kept: its sentence, and the place of its details. */
export type StoryLine = {
  seq: number
  at: string
  kind: string
  trace_id: string
  span_id: string
  ms: number | null
  text: string
  bad: boolean
}

/** Lines in memory. Beyond that, the oldest leave, or newer ones are only counted. */
const MOST = 5000
const SLACK = 500
const FIRST = 300
/** Entries that are searched at once for some kinds. */
const SEARCHED = 5000
const PAGE = 1000

type LogPage = { items: LogEntry[]; next_cursor: string | null }

/**
 * A part of the log without gaps, in order of `seq`, that grows at both ends. Entries arrive at any
 * rate and are shown once per frame. While somebody reads, nothing above the newest line moves.
 */
export class LogWindow {
  readonly lines: StoryLine[] = []
  /** Counts the changes of everything above and below. */
  readonly changed = signal(0)
  problem: ApiProblem | null = null
  /** Newer entries that are not in `lines`. */
  skipped = 0
  /** True while the newest line is to be seen. */
  following = true
  paused = false
  /** Lines that the last change put in front. */
  prepended = 0
  readonly #scope: string
  /** Kinds, separated by commas, as the API takes them. Empty: all. */
  readonly #kind: string
  #incoming: StoryLine[] = []
  #frame = 0
  #loading = true
  /** The entries after `#from` and up to `#reached` are in `lines`, or of no chosen kind. */
  #from = 0
  #reached = 0
  /** The newest entry of the scope that was heard of. */
  #newest = 0

  constructor(scope: string, kind: string) {
    this.#scope = scope
    this.#kind = kind
  }

  get hasOlder(): boolean {
    return this.#from > 0 && !this.#loading
  }

  get loading(): boolean {
    return this.#loading
  }

  /** Loads the newest entries; returns the `seq` after which the socket continues, or null. */
  async start(): Promise<number | null> {
    const state = await get<{ last_seq: number }>(`/v1/scopes/${part(this.#scope)}`)
    if (!state.ok) return this.#failed(state.problem)
    this.#newest = Math.max(this.#newest, state.value.last_seq)
    return this.#loadNewest()
  }

  add(entry: LogEntry): void {
    this.#newest = entry.seq
    if (this.#kind !== '' && !this.#kind.split(',').includes(entry.kind)) return
    this.#incoming.push(lineOf(entry))
    // A hidden page has no frames.
    if (this.#incoming.length > 2 * MOST) this.#flush()
    this.#schedule()
  }

  /** The reader has left the newest line, or is back at it. */
  follows(following: boolean): void {
    if (following === this.following) return
    this.following = following
    this.changed.value += 1
  }

  pause(): void {
    this.paused = true
    this.following = false
    this.changed.value += 1
  }

  /** Continues with the newest lines. */
  async follow(): Promise<void> {
    this.paused = false
    this.following = true
    if (this.skipped > 0) await this.#loadNewest()
    this.changed.value += 1
  }

  stop(): void {
    cancelAnimationFrame(this.#frame)
  }

  async loadOlder(): Promise<void> {
    if (!this.hasOlder) return
    const before = this.#from + 1
    const from = Math.max(0, this.#from - this.#step)
    const older = await this.#read(from, before)
    if (!older || before !== this.#from + 1) return
    this.#from = from
    this.lines.unshift(...older)
    this.prepended = older.length
    const excess = this.lines.length - MOST
    if (excess > 0 && !this.following) {
      this.lines.length = MOST
      this.skipped += excess
    }
    this.changed.value += 1
  }

  get #step(): number {
    return this.#kind === '' ? FIRST : SEARCHED
  }

  async #loadNewest(): Promise<number | null> {
    const newest = this.#newest
    const from = Math.max(0, newest - this.#step)
    const found = await this.#read(from)
    if (!found) return null
    this.lines.splice(0, this.lines.length, ...found)
    this.#from = from
    this.#reached = Math.max(newest, found.at(-1)?.seq ?? 0)
    this.skipped = 0
    this.#flush()
    return this.#reached
  }

  /** All entries after `from`, over as many pages as they take. Null after a problem. */
  async #read(from: number, before?: number): Promise<StoryLine[] | null> {
    this.#loading = true
    const lines: StoryLine[] = []
    for (let after: string | null = String(from); after !== null;) {
      const path: string = `/v1/scopes/${part(this.#scope)}/log${query({ after, before, kind: this.#kind, limit: PAGE })}`
      const page: Answer<LogPage> = await get<LogPage>(path)
      if (!page.ok) return this.#failed(page.problem)
      lines.push(...page.value.items.map(lineOf))
      after = page.value.next_cursor
    }
    this.#loading = false
    this.problem = null
    return lines
  }

  #failed(problem: ApiProblem): null {
    this.#loading = false
    this.problem = problem
    this.changed.value += 1
    return null
  }

  #schedule(): void {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0
      if (this.#loading) this.#schedule()
      else this.#flush()
    })
  }

  /** Shows what has arrived, once. */
  #flush(): void {
    const fresh = this.#incoming.filter(({ seq }) => seq > this.#reached)
    this.#incoming = []
    this.#reached = fresh.at(-1)?.seq ?? this.#reached
    const room = this.paused || this.skipped > 0 ? 0 : this.following ? fresh.length : Math.max(0, MOST - this.lines.length)
    this.lines.push(...fresh.slice(0, room))
    this.skipped += Math.max(0, fresh.length - room)
    const excess = this.lines.length - MOST
    if (this.following && excess > SLACK) {
      this.lines.splice(0, excess)
      this.#from = (this.lines[0]?.seq ?? 1) - 1
    }
    this.changed.value += 1
  }
}

const BAD = new Set(['failed', 'timeout', 'unknown', 'dead_lettered', 'error', 'partial_failure', 'lost'])

const say = (value: string | number): string => (typeof value === 'number' ? duration(value) : statusText(value))

function lineOf(entry: LogEntry): StoryLine {
  const { seq, at, kind, trace_id, span_id, duration_ms: ms } = entry
  const { status, reason } = entry as LogEntry & Record<string, unknown>
  const bad =
    /-(?:failed|lost|parked|degraded|refused|overruled)$/.test(kind) ||
    BAD.has(String(status)) ||
    (kind === 'reflex-passed' && reason === 'error')
  return { seq, at, kind, trace_id, span_id, ms, text: sentenceOf(entry, say), bad }
}
