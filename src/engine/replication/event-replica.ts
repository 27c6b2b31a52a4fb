import type { Agent } from '../../agent/define-agent.ts'
import { messageOf } from '../../base/error-text.ts'
import { limits } from '../../base/limits.ts'
import { outcomesSender, outcomesText, type SendOutcomes } from '../../events/outcomes.ts'
import type { FeatureAnswers } from '../../store/packs/told.ts'
import type { Env } from '../../env.ts'
import type { LogEntry, NewEntry } from '../../contract/log-entry.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import { replicateCalls, type CallReport } from '../../store/traces/traces.ts'
import { type Defer, LEAST_ALONE, mayBePacked, mayRepeat, packable, replicateEvents, type Report } from '../../store/replicate.ts'
import { DatabaseAway } from '../../store/packs/missing.ts'
import type { ModelReport, ScopeReport } from '../../store/scope-rows.ts'
import type { Alarm } from '../../kernel/alarm.ts'
import type { Outbox } from '../../kernel/outbox.ts'
import type { Database, ScopeCounters, UnitOfWork } from '../../kernel/unit.ts'
import { CALLER, MOST_DEATHS, type Guard } from '../upkeep/guard.ts'
import { type Committed, type Follows, cleanedJson, type Log } from '../log/log.ts'
import { PARTIAL } from '../../contract/reports/trace.ts'
import { spanBitOf } from '../../traces/entries/table.ts'

/** Maximum number of events in one report. */
const BATCH = 1000
/** Maximum number of changed events held in memory; with more, the log is read for them. */
const MOST_HELD = 20_000
const MINUTE_MS = 60_000
/**
 * The scope's own row in D1 says so often that the scope is in use: D1 forgets a scope after a year
 * without it. Lists take the time of the last event from the statistics.
 */
const PERIOD_MS = 7 * 86_400_000
/** Answered events whose traits are held, in case they are asked for again. */
const MOST_ANSWERED = 1000
/** The state key of the mark. */
const MARK = 'replica'
/**
 * The key of earlier versions. Before packs they wrote a number there, and spin where they find
 * anything else: it stays as it was written, and such a version tells D1 again what came since.
 */
const EARLIER_MARK = 'replicated'
/**
 * D1 has the state of every event up to the log's `seq`, and what features answer up to `told`.
 * Units up to `untold` were written as told, and were not.
 */
type Mark = { seq: number; told: number; untold: number }

function readMark(database: Database): { key: string; mark: Mark } {
  const earlier = database.read<Mark | number>(EARLIER_MARK, 0)
  if (typeof earlier !== 'number') return { key: EARLIER_MARK, mark: earlier }
  const own = database.read<Mark>(MARK, { seq: 0, told: 0, untold: 0 })
  // An earlier version may have gone on, and D1 then knows more than the mark says.
  return { key: MARK, mark: { ...own, seq: Math.max(own.seq, earlier) } }
}
/** The scope's row as D1 has it. */
const ROW = 'reported'

/** Texts of the row as a whole; without what every answer changes; and without its alarm. */
type Written = { all: string; about: string; idle: string; period: number }
const UNWRITTEN: Written = { all: '', about: '', idle: '', period: 0 }
type Sized = { seq: number; id: string; bytes: number; accepted_at: number }
/** Events that are being replicated, and the log's `seq` that is replicated after the last. */
type Portion = {
  events: Sized[]
  changes: TraitChanges
  reaches: number
  /** Events after this `seq` are new to D1, and may be packed. */
  known: number
}

/** `failed_at` is the `seq` of the log entry with the error's stack. */
type EventRow = Omit<Report, 'discarded' | 'revision' | 'stack' | 'agent' | 'nth' | keyof TraceTraits> & {
  seq: number
  discarded: number | null
  failed_at: number | null
}

/** The rows of the events whose `column` is in the list. */
const rowsBy = (column: 'seq' | 'id'): string => `SELECT seq, id, payload, trace_id, payload ->> '$.meta.parent_id' AS parent_id,
    timestamp, status, attempts, error, accepted_at, ended_at, outcome->>'discarded' AS discarded,
    CASE WHEN status = 'dead_lettered' THEN outcome->>'log_seq' END AS failed_at
  FROM events WHERE ${column} IN (SELECT value FROM json_each(?1)) ORDER BY seq`
const ROWS_BY_SEQ = rowsBy('seq')
const ROWS_BY_ID = rowsBy('id')

/** A feature's fields of the scope's row in D1, and its part beside packed outcomes. */
type ReplicatedFeature = { name: string; reports?: () => Partial<ScopeReport>; answers?: () => unknown; unanswered?: () => void }

type ReportedParts = {
  scope: string
  database: Database
  settings: () => Settings
  agent: () => Agent
  inbox: { readonly open: number; readonly last: number; readonly forgotten: number }
  guard: Pick<Guard, 'note' | 'deaths' | 'park' | 'parkedAt' | 'count'>
  features: readonly ReplicatedFeature[]
  /** The fields about the model: its calls, and its outage. */
  modelReport: (database: Database, is_open: boolean) => ModelReport
}

/** The scope's row in D1, without its times. */
function reportOf({ scope, database, settings, agent, inbox, guard, features, modelReport }: ReportedParts) {
  const own = {
    scope,
    agent: agent().name,
    open: inbox.open,
    turn_since: database.read<{ since: number } | null>('turn', null)?.since ?? null,
    parked: guard.count,
    learns: settings().learning.mode === 'off' ? (0 as const) : (1 as const),
    redact: settings().redact.length === 0 ? null : JSON.stringify(settings().redact),
    spans_exported: 0,
    spans_dropped: 0,
    ...modelReport(database, inbox.open > 0),
  }
  return Object.assign(own, ...features.map((feature) => feature.reports?.())) as typeof own
}

/** Every export and every answer of the model changes these: they go with the next event. */
const UNSTEADY = { spans_exported: 0, model_answered_at: 0, model_served_at: 0 }
type OwnRow = ReturnType<typeof reportOf>
const idleText = (row: OwnRow): string => JSON.stringify({ ...row, ...UNSTEADY })

type EventReplicaParts = ReportedParts & {
  alarm: Pick<Alarm, 'next' | 'by'>
  log: Pick<Log, 'last' | 'read' | 'entry' | 'clean' | 'uncommitted'>
  counters: Pick<ScopeCounters, 'told'>
  db: D1Database
  now: () => number
  env: Pick<Env, 'OUTCOMES' | 'REFLEX_QUEUE_NOTES'>
}

/**
 * Replicates a scope's events, its calls, and the scope's own row, to D1. It needs no queue: every
 * change of an event is in the log, so the log after a watermark names all changed events. Changes
 * of this process are held in memory; after a restart the log is read. If the process dies before
 * D1 has a change, it is replicated again; if it dies before the watermark is written, D1 sees the
 * same revision twice and ignores it.
 *
 * An event is offered for a pack once, with its first report: if that may have failed, and in each
 * later report, it is a row, which hides the event in a pack.
 *
 * The outcomes that a caller packs, and the answers of features, go with its answer: the unit that
 * ends the events says so in its row of the log, so that no watermark is written for them.
 */
export class EventReplica implements Follows {
  readonly name = 'replica'
  /** It reads the log between its mark and this entry itself, when it replicates. */
  readonly from: number
  readonly #parts: EventReplicaParts
  readonly #mark_key: string
  #mark: number
  /** The mark that a restart finds. */
  #kept: number
  #untold: number
  /** D1 has what features answer up to this `seq` of the log. */
  #answered_to: number
  /** The events whose outcomes callers wait for, and those that a unit was written as told of. */
  readonly #awaited = new Set<string>()
  #named_told: readonly string[] = []
  /** Rows of events as the last unit that changed one left them, for the answer that follows it. */
  #read: readonly EventRow[] = []
  /** `#held` has the changes after this `seq` of the log; from the mark to it, the log is read. */
  #held_from: number
  #held = noChanges()
  /** The last entry that was followed. */
  #seq: number
  /** D1 may have events up to this `seq`, from this process or one before it. */
  #told: number
  #portion: Portion | null = null
  readonly #defer: Defer
  /** Current maximum of events in one report: fewer during the search for one that D1 rejects. */
  #most = BATCH
  /** The scope's own row in D1 as last written, and what the storage has of that. */
  #written: Written
  #stored: Written
  /** The traits of events that callers pack. */
  #answered: TraitChanges['events'] = new Map()
  #outbox: Pick<Outbox, 'soon' | 'reached' | 'rests'> | null = null

  constructor(parts: EventReplicaParts) {
    this.#parts = parts
    const { key, mark } = readMark(parts.database)
    const { seq, told, untold } = mark
    this.#mark_key = key
    const by_units = parts.counters.told > untold ? parts.counters.told : 0
    this.#mark = this.#kept = Math.max(seq, by_units)
    this.#answered_to = Math.max(told, by_units)
    this.#untold = untold
    this.#written = this.#stored = parts.database.read<Written>(ROW, UNWRITTEN)
    this.#told = parts.inbox.last
    this.#defer = this.#deferBy(outcomesSender(parts.env, parts.db))
    this.from = this.#held_from = this.#seq = parts.log.last
  }

  sendBy(outbox: Outbox, unit: UnitOfWork): void {
    this.#outbox = outbox
    const waiting = () => this.waiting
    outbox.source(this.name, {
      send: () => this.send(unit),
      get waiting() {
        return waiting()
      },
    })
  }

  get answeredTo(): number {
    return this.#answered_to
  }

  /** Number of events, or of log entries that name them, whose current state D1 does not have. */
  get waiting(): number {
    return this.#size + (this.#portion?.events.length ?? 0) + Math.max(0, this.#held_from - this.#reached)
  }

  get #size(): number {
    return this.#held.events.size + this.#held.calls.size
  }

  /** Log entries after this `seq` are still needed. */
  get mark(): number {
    return this.#mark
  }

  /** Ids of the events whose current state D1 does not have; null if only the log has them. */
  get unreplicated(): string[] | null {
    if (this.#reached < this.#held_from) return null
    return [...this.#held.events.keys(), ...(this.#portion?.events ?? []).map(({ id }) => id)]
  }

  follow(entries: readonly Committed[]): void {
    for (const { entry, ...place } of entries) {
      noteEntry(this.#held, entry, place)
      this.#seq = place.seq
    }
    if (this.#size > MOST_HELD) {
      this.#held = noChanges()
      this.#held_from = this.#seq
    }
    this.#outbox?.soon(this.name)
  }

  /** Replicates all changes. Throws if D1 is unavailable. */
  async send(unit: UnitOfWork): Promise<void> {
    const { database, db } = this.#parts
    for (;;) {
      this.#portion ??= this.#nextPortion()
      const { events, changes, reaches } = this.#portion
      while (events.length > 0) await this.#sendSome(this.#portion, unit)
      await replicateCalls(db, reportOf(this.#parts), Array.from(changes.calls.values()))
      this.#portion = null
      this.#mark = Math.max(this.#mark, reaches)
      if (this.#mark > this.#kept) this.#keep(this.#mark)
      if (this.#size === 0 && this.#mark >= this.#held_from) break
    }
    await this.#report([], noChanges())
    if (this.#stored !== this.#written) database.write(ROW, (this.#stored = this.#written))
  }

  /** Runs work of a caller who packs the outcomes of these events. */
  async awaiting<Result>(ids: readonly string[], work: () => Promise<Result>): Promise<Result> {
    for (const id of ids) this.#awaited.add(id)
    try {
      return await work()
    } finally {
      for (const id of ids) this.#awaited.delete(id)
    }
  }

  /** True if callers get all that D1 lacks once the open unit is committed. */
  isTold(): boolean {
    const { log, database } = this.#parts
    this.#read = []
    if (this.#awaited.size === 0 || this.#portion !== null || this.#mark < this.#held_from || this.#held.calls.size > 0) return false
    const named = [...this.#held.events.keys()]
    for (const { entry } of log.uncommitted) {
      if (entry.event_ids.length === 0) return false
      named.push(...entry.event_ids)
    }
    const ids = [...new Set(named)]
    if (ids.length === 0 || ids.length >= LEAST_ALONE || ids.some((id) => !this.#awaited.has(id))) return false
    const rows = database.allOf<EventRow>(ids, ROWS_BY_ID)
    const isTold = rows.length === ids.length && rows.every((row) => row.seq > this.#told && !row.discarded && mayBePacked(row))
    if (isTold) {
      this.#named_told = ids
      this.#read = rows
    }
    return isTold
  }

  /**
   * The outcomes of these events, as JSON, for a caller that packs them, and that asks again if it
   * may not have: so D1 counts as knowing them. Events that are being sent, or were sent before
   * they ended, stay here; so do new ones that are a pack by themselves. The scope's row goes with
   * them if it has changed, and the caller writes rows.
   */
  answer(ids: readonly string[], writes_rows: boolean): string | null {
    const { scope, counters } = this.#parts
    const { events: held } = this.#held
    const sending = new Set(this.#portion?.events.map(({ id }) => id))
    const rows = ids.length < LEAST_ALONE ? this.#rowsOf(ids) : null
    const asked = (rows ?? this.#sized(ids)).filter(({ id }) => !sending.has(id))
    const fresh = asked.filter(({ id, seq }) => seq > this.#told && held.has(id))
    const again = asked.filter(({ id }) => !held.has(id))
    const some = fresh.length < LEAST_ALONE ? [...fresh, ...again] : again
    const traits = new Map(some.map(({ id }) => [id, held.get(id) ?? this.#answered.get(id) ?? UNKNOWN]))
    const chosen = rows ? rows.filter(({ id }) => traits.has(id)) : this.#rowsOfSome(some)
    const packed = packable(this.#reportsOf(chosen, traits, 0), scope)
    const given = new Set(packed.map(({ id }) => id))
    this.#told = fresh.reduce((last, { id, seq }) => (given.has(id) ? Math.max(last, seq) : last), this.#told)
    for (const [id, known] of traits) {
      if (!given.has(id)) continue
      this.#answered.set(id, known)
      held.delete(id)
    }
    if (this.#answered.size > MOST_ANSWERED) this.#answered = new Map()
    if (again.length > 0) {
      this.#unanswered()
      this.#written = UNWRITTEN
    }
    const told = packed.length === 0 ? {} : this.#answers()
    if (ids.some((id) => this.#named_told.includes(id) && !given.has(id))) this.#takeBack(this.#kept)
    if (this.#size === 0 && this.#portion === null && this.#mark >= this.#held_from) {
      this.#mark = this.#seq
      if (counters.told === this.#seq && this.#seq > this.#untold) this.#kept = this.#seq
      if (this.#mark > this.#kept) this.#keep(this.#mark)
      // Without the alarm, which takes many statements to find.
      const own = reportOf(this.#parts)
      if (idleText(own) === this.#written.idle && this.#period === this.#written.period) this.#outbox?.rests(this.name)
      else if (packed.length > 0 && writes_rows) return outcomesText(packed, told, this.#answeredRow(own))
    }
    return packed.length === 0 ? null : outcomesText(packed, told)
  }

  /** The caller writes it with the outcomes: the scope needs no alarm to report it. */
  #answeredRow(own: OwnRow): ScopeReport {
    const { alarm, database, now } = this.#parts
    this.#outbox?.rests(this.name)
    const next = alarm.next()
    const { row, ...written } = this.#row(own, next)
    this.#written = this.#stored = written
    database.write(ROW, written)
    if (next !== null) alarm.by(next)
    return { ...row, updated_at: now() }
  }

  /** Reports the state of events, and what features have, although a caller was to pack it. */
  unpacked(ids: readonly string[]): void {
    const events = this.#sized(ids)
    for (const { id, seq } of events) {
      this.#told = Math.max(this.#told, seq)
      extend(this.#held.events, id, { ...(this.#answered.get(id) ?? UNKNOWN) })
    }
    this.#unanswered()
    if (this.#stored.period > 0) this.#parts.database.write(ROW, UNWRITTEN)
    this.#written = this.#stored = UNWRITTEN
    // After a restart, the log from there is sent as rows.
    const since = Math.min(...events.map(({ accepted_at }) => accepted_at))
    const before = this.#parts.database.first<{ seq: number }>('SELECT seq FROM log WHERE at < ? ORDER BY seq DESC LIMIT 1', since)
    if (events.length > 0) this.#takeBack(Math.min(this.#kept, before?.seq ?? 0))
    this.#outbox?.soon(this.name)
  }

  #keep(seq: number): void {
    this.#kept = seq
    this.#parts.database.write(this.#mark_key, { seq, told: this.#answered_to, untold: this.#untold } satisfies Mark)
  }

  /** Units that were written as told are not: D1 knows the log up to this `seq`. */
  #takeBack(seq: number): void {
    this.#untold = this.#parts.counters.told
    this.#answered_to = Math.min(seq, this.#answered_to)
    this.#keep(seq)
  }

  #answers(): FeatureAnswers {
    const told = this.#parts.features.map(({ name, answers }) => [name, answers?.()] as const)
    this.#answered_to = this.#seq
    return Object.fromEntries(told.filter(([, value]) => value !== undefined))
  }

  #unanswered(): void {
    this.#answered_to = 0
    for (const feature of this.#parts.features) feature.unanswered?.()
  }

  /** The answers of features go with the events that are sent to be packed. */
  #deferBy(send: SendOutcomes): Defer {
    return async (events) => {
      const told = this.#answers()
      let is_sent = false
      try {
        return (is_sent = await send(events, told))
      } finally {
        if (!is_sent) this.#unanswered()
      }
    }
  }

  get #reached(): number {
    return this.#portion?.reaches ?? this.#mark
  }

  #nextPortion(): Portion {
    const { log } = this.#parts
    if (this.#mark >= this.#held_from) {
      const changes = this.#held
      this.#held = noChanges()
      return this.#portionOf(changes, this.#seq, this.#told)
    }
    const entries = log.read(this.#mark, BATCH, this.#held_from + 1)
    const changes = noChanges()
    for (const { seq, text } of entries) {
      const entry = JSON.parse(text) as LogEntry
      noteEntry(changes, entry, { seq, at: Date.parse(entry.at) })
    }
    return this.#portionOf(changes, entries.at(-1)?.seq ?? this.#held_from, Infinity)
  }

  #portionOf(changes: TraitChanges, reaches: number, known: number): Portion {
    const events = this.#sized([...changes.events.keys()])
    this.#told = Math.max(this.#told, events.at(-1)?.seq ?? 0)
    return { events, changes, reaches, known }
  }

  #sized(ids: readonly string[]): Sized[] {
    return this.#parts.database
      .allOf<Sized>(
        ids,
        'SELECT seq, id, octet_length(payload) AS bytes, accepted_at FROM events WHERE id IN (SELECT value FROM json_each(?1))',
      )
      .sort((left, right) => left.seq - right.seq)
  }

  /** Replicates as many of the first events as one report takes and removes them from the list. */
  async #sendSome(portion: Portion, unit: UnitOfWork): Promise<void> {
    const { events, changes, known } = portion
    let count = 0
    for (let bytes = 0; count < Math.min(events.length, this.#most) && bytes < limits.page_bytes; count += 1)
      bytes += events[count]?.bytes ?? 0
    const some = events.slice(0, count)
    // Until D1 has answered, it may have these.
    portion.known = Infinity
    try {
      await this.#report(some, changes, known)
      portion.known = known
    } catch (error) {
      if (await this.#isFound(some, error, unit)) events.shift()
      return
    }
    this.#most = Math.min(BATCH, this.#most * 2)
    events.splice(0, count)
  }

  /** Also writes the scope's own row if it has changed or was not written for a time. */
  async #report(some: readonly Sized[], changes: TraitChanges, known = Infinity): Promise<void> {
    const { db, now, inbox } = this.#parts
    const reports = some.length === 0 ? [] : this.#reports(some, changes.events, known)
    const { row, ...now_written } = this.#row()
    if (reports.length === 0 && now_written.about === this.#written.about) return
    const isWritten = now_written.all === this.#written.all && now_written.period === this.#written.period
    const has_forgotten = inbox.forgotten > 0
    await replicateEvents(db, reports, { ...row, updated_at: now() }, { isWritten, has_forgotten, defer: this.#defer })
    if (!isWritten) this.#written = now_written
  }

  /** Events after the number `known` are new to D1. */
  #reports(some: readonly Sized[], traits: TraitChanges['events'], known: number): Report[] {
    return this.#reportsOf(this.#rowsOfSome(some), traits, known)
  }

  #rowsOfSome(some: readonly Pick<Sized, 'seq'>[]): readonly EventRow[] {
    const seqs = some.map(({ seq }) => seq)
    return seqs.length === 0 ? [] : this.#parts.database.allOf<EventRow>(seqs, ROWS_BY_SEQ)
  }

  /** The rows of these few events, in order. */
  #rowsOf(ids: readonly string[]): readonly EventRow[] {
    const read = this.#read
    this.#read = []
    if (ids.length > 0 && ids.length === read.length && read.every(({ id }) => ids.includes(id))) return read
    return this.#parts.database.allOf<EventRow>(ids, ROWS_BY_ID)
  }

  #reportsOf(rows: readonly EventRow[], traits: TraitChanges['events'], known: number): Report[] {
    const { log, inbox } = this.#parts
    const agent = this.#parts.agent().name
    return rows.map(({ seq, discarded, failed_at, ...row }) => ({
      ...row,
      nth: seq > known ? seq : null,
      may_repeat: inbox.forgotten > 0 && mayRepeat(row.id, inbox.forgotten),
      payload: cleanedJson(row.payload, log),
      ...(traits.get(row.id) ?? { log_from: log.last, kinds: 0, skills: '' }),
      agent,
      stack: failed_at === null ? null : stackIn(log.entry(failed_at)),
      revision: log.last,
      discarded: Boolean(discarded),
    }))
  }

  /** The scope's row, and texts to compare it. */
  #row(own = reportOf(this.#parts), at = this.#parts.alarm.next()) {
    // Rounded up to a minute: the sweep looks for alarms that are overdue by more than that.
    const row = { ...own, wake_at: at === null ? null : Math.ceil(at / MINUTE_MS) * MINUTE_MS }
    return { row, idle: idleText(own), about: JSON.stringify({ ...row, ...UNSTEADY }), all: JSON.stringify(row), period: this.#period }
  }

  get #period(): number {
    return Math.floor(this.#parts.now() / PERIOD_MS)
  }

  /**
   * D1 rejects one of these: sends halves until it is alone. It is retried a few times, then
   * parked. Returns true if the first one is parked; throws if nothing can be sent, or if a
   * database that may have packed one is away: they wait for it.
   */
  async #isFound(some: readonly Sized[], error: unknown, unit: UnitOfWork): Promise<boolean> {
    const { db, guard, now } = this.#parts
    const [first] = some
    if (!first || error instanceof DatabaseAway) throw error
    await replicateEvents(db, [], { ...this.#row().row, updated_at: now() })
    this.#outbox?.reached(this.name)
    if (some.length > 1) {
      this.#most = Math.ceil(some.length / 2)
      return false
    }
    const work = { kind: 'outbox', id: String(first.seq) } as const
    unit((open) => {
      guard.note(open, work, error)
      // It is replicated again when it changes.
      if (guard.deaths(work) >= MOST_DEATHS) guard.park(open, work, `D1 did not take the event ${first.id}: ${messageOf(error)}`)
    }, CALLER)
    if (guard.parkedAt(work) === null) throw error
    return true
  }
}

const stackIn = (entry: LogEntry | null): string | null =>
  entry && 'stack' in entry && typeof entry.stack === 'string' ? entry.stack : null

/** The traits of an event by the log, for the list of traces. `skills` has one id a line. */
type TraceTraits = { log_from: number; kinds: number; skills: string }

/** The whole log is read for the trace of such an event. */
const UNKNOWN: TraceTraits = { log_from: 1, kinds: 0, skills: '' }

/** Changed events by id, and traces by the entries that name no event. */
type TraitChanges = { events: Map<string, TraceTraits>; calls: Map<string, CallReport> }
const noChanges = (): TraitChanges => ({ events: new Map(), calls: new Map() })

type About = Pick<NewEntry, 'kind' | 'event_ids' | 'trace_id' | 'duration_ms'> & { skill_id?: unknown; status?: unknown; outcome?: unknown }

/** Notes the events that an entry names, or else its trace. `at` in ms. */
function noteEntry({ events, calls }: TraitChanges, entry: About, { seq, at }: { seq: number; at: number }): void {
  const bit = spanBitOf(entry.kind) | (isPartial(entry) ? PARTIAL : 0)
  const skill = typeof entry.skill_id === 'string' ? `\n${entry.skill_id}\n` : ''
  for (const id of entry.event_ids) extend(events, id, { log_from: seq, kinds: bit, skills: skill })
  // A replay writes nothing but its entry of the log.
  if (entry.event_ids.length > 0 || entry.kind === 'replay-done') return
  const known = calls.get(entry.trace_id)
  const failed = entry.status === 'failed' || entry.status === 'unknown' || entry.status === 'error'
  const status = entry.kind.endsWith('-started') ? 'running' : failed || known?.status === 'error' ? 'error' : 'ok'
  const started_at = Math.floor(at - (entry.duration_ms ?? 0))
  const { trace_id } = entry
  const call = extend(calls, trace_id, {
    trace_id,
    log_from: seq,
    kinds: bit,
    skills: skill,
    started_at,
    ended_at: at,
    status,
    revision: seq,
  })
  Object.assign(call, { status, revision: seq, ended_at: Math.max(call.ended_at, at), started_at: Math.min(call.started_at, started_at) })
}

const isPartial = ({ kind, outcome }: About): boolean =>
  kind === 'event-ended' && (outcome as { partial?: unknown } | null)?.partial === true

function extend<Kept extends TraceTraits>(changes: Map<string, Kept>, id: string, traits: Kept): Kept {
  const known = changes.get(id)
  if (!known) {
    changes.set(id, traits)
    return traits
  }
  known.kinds |= traits.kinds
  if (!known.skills.includes(traits.skills)) known.skills += traits.skills
  return known
}
