import './log.css'
import { useSignal, signal } from '@preact/signals'
import { useLocation } from 'preact-iso'
import { useEffect, useMemo, useLayoutEffect, useRef } from 'preact/hooks'
import { query, part, useGet, get, type Answer, type ApiProblem } from '../../../api/index.ts'
import { followScope } from '../../../api/socket.ts'
import { ErrorBox, Loaded } from '../../../ui/feedback.tsx'
import { count } from '../../../ui/numbers.ts'
import { Text, visible } from '../../../ui/text.tsx'
import { useKeys } from '../../../ui/use-keys.ts'
import { kinds, sentenceOf } from '../../../../../src/traces/entries/sentences.ts'
import type { LogEntry } from '../../../../../src/contract/log-entry.ts'
import { Json } from '../../../ui/json.tsx'
import { TraceLink } from '../../../ui/links.tsx'
import { Component } from 'preact'
import { Clock, duration } from '../../../ui/time.tsx'
import { statusText } from '../../../ui/status.tsx'

/** The part of an entry that is kept: its sentence, and the place of its details. */
type StoryLine = {
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
class LogWindow {
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

/** The height of a row, by the width of the page: see the stylesheet. */
const rowPx = (): number => (matchMedia('(max-width: 50rem)').matches ? 54 : 30)
const BEYOND = 10
/** Older entries are loaded when the reader is this near to the oldest. */
const NEAR_PX = 600

type RowsProps = { shown: LogWindow; picked: number | null; onPick: (seq: number) => void }

/** Only the rows in view are in the document. The view moves only with the reader, or follows. */
function Rows({ shown, picked, onPick }: RowsProps) {
  const frame = useRef<HTMLDivElement>(null)
  const top = useSignal(0)
  void shown.changed.value
  const { lines } = shown
  const row = rowPx()
  const height = frame.current?.clientHeight ?? 600
  const last = shown.following ? lines.length : Math.min(lines.length, Math.ceil((top.value + height) / row) + BEYOND)
  const first = Math.max(0, shown.following ? last - Math.ceil(height / row) - BEYOND : Math.floor(top.value / row) - BEYOND)
  useLayoutEffect(() => {
    const { current } = frame
    if (!current) return
    if (shown.prepended > 0) current.scrollTop += shown.prepended * row
    shown.prepended = 0
    if (shown.following) current.scrollTop = current.scrollHeight
  })
  const scrolled = () => {
    const { current } = frame
    if (!current) return
    const before = top.peek()
    const { scrollTop, scrollHeight, clientHeight } = current
    const isAtEnd = scrollHeight - scrollTop - clientHeight < row
    if (!isAtEnd && scrollTop < before) shown.follows(false)
    if (isAtEnd && !shown.paused && shown.skipped === 0) shown.follows(true)
    top.value = scrollTop
    if (!shown.following && scrollTop < NEAR_PX) void shown.loadOlder()
  }
  return (
    <div class="lines" ref={frame} onScroll={scrolled} tabIndex={0} role="region" aria-label="Log">
      <ol style={{ paddingTop: `${first * row}px`, paddingBottom: `${(lines.length - last) * row}px` }}>
        {lines.slice(first, last).map((line) => (
          <LogLineRow key={line.seq} line={line} picked={line.seq === picked} onPick={onPick} />
        ))}
      </ol>
    </div>
  )
}

type RowProps = { line: StoryLine; picked: boolean; onPick: (seq: number) => void }

/** A line never changes, so that a frame renders only its new ones. */
class LogLineRow extends Component<RowProps> {
  override shouldComponentUpdate({ line, picked }: RowProps): boolean {
    return line !== this.props.line || picked !== this.props.picked
  }

  override render({ line, picked, onPick }: RowProps) {
    const { seq, at, kind, text, ms, bad, trace_id, span_id } = line
    return (
      <li class={picked ? 'picked' : ''}>
        <Clock at={at} />
        <button type="button" class="plain" aria-expanded={picked} onClick={() => onPick(seq)}>
          {kind}
        </button>
        <span class={bad ? 'bad text' : 'text'}>
          <Text text={text} />
        </span>
        <span class="quiet">{ms === null ? '' : duration(ms)}</span>
        <TraceLink id={trace_id} span={span_id} />
      </li>
    )
  }
}

type EntryProps = { scope: string; seq: number; onClose: () => void }

/** All fields of an entry, and ways on from it. The list keeps only its line. */
function Entry({ scope, seq, onClose }: EntryProps) {
  const { path } = useLocation()
  const data = useGet<{ items: LogEntry[] }>(`/v1/scopes/${part(scope)}/log${query({ after: seq - 1, limit: 1 })}`)
  return (
    <section class="card" aria-label={`Entry ${seq}`}>
      <div class="heading">
        <h2>Entry {seq}</h2>
        <div class="actions">
          <a href={`${path}?tab=context&at=${seq}`}>Context after it</a>
          <button type="button" onClick={onClose}>
            Close
          </button>
        </div>
      </div>
      <Loaded data={data}>
        {({ items: [entry] }) =>
          entry === undefined ? (
            <p>The entry is no longer kept.</p>
          ) : (
            <>
              <p>
                <TraceLink id={entry.trace_id} span={entry.span_id} text="Open its trace" />
              </p>
              <Json value={entry} label={`Entry ${seq}`} />
            </>
          )
        }
      </Loaded>
    </section>
  )
}

type Connection = 'connecting' | 'live' | 'lost' | 'ended'

/** The log as a story that continues by itself. The kinds are in the address. */
export function Log({ scope }: { scope: string }) {
  const { path, query: asked, route } = useLocation()
  const { kind = '' } = asked
  const chosen = kind.split(',').filter(Boolean)
  const show = (names: string[]) => route(`${path}${query({ ...asked, kind: names.join(',') })}`, true)
  return (
    <div class="log">
      <div class="actions">
        <label class="inline">
          Show
          <select value="" onChange={({ currentTarget }) => show([...chosen, currentTarget.value])}>
            <option value="">{kind === '' ? 'every kind' : 'one more kind'}</option>
            {kinds.map((name) => !chosen.includes(name) && <option key={name}>{name}</option>)}
          </select>
        </label>
        {chosen.map((name) => (
          <button key={name} type="button" title="Leave it out" onClick={() => show(chosen.filter((one) => one !== name))}>
            {visible(name)} ✕
          </button>
        ))}
      </div>
      <Story key={`${scope} ${kind}`} scope={scope} kind={kind} />
    </div>
  )
}

function Story({ scope, kind }: { scope: string; kind: string }) {
  const shown = useMemo(() => new LogWindow(scope, kind), [])
  const { state, why, retry } = useFollowing(scope, shown)
  const picked = useSignal<number | null>(null)
  const { lines, problem, skipped, paused, following } = shown
  void shown.changed.value
  useKeys({ p: () => (paused ? void shown.follow() : shown.pause()) })
  return (
    <>
      <div class="actions">
        <button type="button" aria-pressed={paused} onClick={() => (paused ? void shown.follow() : shown.pause())}>
          {paused ? 'Continue' : 'Pause'} <kbd>p</kbd>
        </button>
        {!following && (
          <button type="button" onClick={() => void shown.follow()}>
            Go to the newest
          </button>
        )}
        <span role="status" class="quiet">
          {words[state]}
          {paused && `, paused`}
          {skipped > 0 && `, ${count(skipped)} newer ${skipped === 1 ? 'entry' : 'entries'}`}
        </span>
        {why !== null && <Text text={why} />}
        {state === 'ended' && (
          <button type="button" onClick={retry}>
            Connect again
          </button>
        )}
      </div>
      <ErrorBox problem={problem} onRetry={retry} />
      <Rows shown={shown} picked={picked.value} onPick={(seq) => (picked.value = picked.value === seq ? null : seq)} />
      {lines.length === 0 && !shown.loading && <p class="quiet">{nothing(kind)}</p>}
      {picked.value !== null && <Entry key={picked.value} scope={scope} seq={picked.value} onClose={() => (picked.value = null)} />}
    </>
  )
}

const words: Record<Connection, string> = {
  connecting: 'Connecting',
  live: 'Live',
  lost: 'The connection is lost and continues by itself',
  ended: 'The connection has ended',
}
const nothing = (kind: string): string =>
  kind === '' ? 'Nothing has happened in this scope yet.' : `No recent entry is of the kind ${kind.replaceAll(',', ' or ')}.`

/** Loads the newest part of the log, then follows it over any number of connections. */
function useFollowing(scope: string, shown: LogWindow) {
  const state = useSignal<Connection>('connecting')
  const why = useSignal<string | null>(null)
  const attempt = useSignal(0)
  useEffect(() => {
    let close = (): void => {}
    let isOver = false
    why.value = null
    const begin = async () => {
      const after = await shown.start()
      if (isOver || after === null) return
      close = followScope(scope, {
        after,
        onOpen: () => {
          state.value = 'live'
        },
        onEntry: (entry) => shown.add(entry),
        onLost: () => {
          state.value = 'lost'
        },
        onRefused: (reason) => {
          state.value = 'ended'
          why.value = reason
        },
      })
    }
    void begin()
    return () => {
      isOver = true
      close()
      shown.stop()
    }
  }, [attempt.value])
  return { state: state.value, why: why.value, retry: () => void (attempt.value += 1) }
}
