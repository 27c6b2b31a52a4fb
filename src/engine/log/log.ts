import type { Settings } from '../../contract/settings/settings.ts'
import { byteLength, fitsBytes, mapJson } from '../../base/json.ts'
import { limits } from '../../base/limits.ts'
import { hidesNothing, pastedSecrets, type SecretHider, quoteHider } from '../../base/secrets.ts'
import type { ContextJson } from '../../reflexes/context/context-json.ts'
import { type TextMask, maskedTexts, maskOnce, plainMask, redactor } from '../../traces/redact.ts'
import type { LogEntry, NewEntry } from '../../contract/log-entry.ts'
import type { Database, StateWrite } from '../../kernel/unit.ts'
import { createHash } from 'node:crypto'
import { Buffer } from 'node:buffer'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { logError } from '../../base/warn.ts'

/** A unit of work writes one row, or several of about this size: a row is read as a whole. */
const ROW_BYTES = 64_000

/** The most entries that one search reads, however few match. */
const MOST_LOOKED_AT = 20_000
/** Entries that block the scope while they are searched for a trace: about 15 ms. */
const SEARCHED_AT_ONCE = 5000
/** Characters of entries that block the scope while they are read: about 5 ms. */
const READ_AT_ONCE = 500_000
/** Unpacked rows that are kept: entries that belong together are close to each other. */
const ROWS_KEPT = 2

type Text = { seq: number; text: string }
type Bounds = { before: number; bytes: number }
/** An entry of a unit. `at` is the unit's time in ms; `entry` has neither `seq` nor `at`. */
export type UncommittedEntry = Text & { at: number; entry: NewEntry }
export type LogListener = (entries: readonly UncommittedEntry[]) => void
/** A row about to be written. `split`: where the context of an entry begins, its last field. */
export type UnlinkedRow = { seq: number; at: number; texts: readonly { text: string; split: number | null }[] }
/** Columns of a row beside its entries, which link it with the row before. */
type RowLink = { chain: ArrayBuffer; head: string | null }
type RowLinker = { link(row: UnlinkedRow): RowLink; leaves(chain: ArrayBuffer, texts: UnlinkedRow['texts']): readonly string[] }

/**
 * The scope's append-only log (G5). A unit appends entries in the transaction of the changes that
 * they record.
 */
export class Log {
  readonly #database: Database
  readonly #now: () => number
  readonly #hider: SecretHider
  readonly masks: Masks
  readonly #listeners: LogListener[] = []
  #last: number
  #latest_at: number
  setBack: (ahead_ms: number) => void = () => {}
  /** Entries of the open unit of work, which are not in the table yet. */
  #unwritten: PackedLine[] = []
  /** Entries that the listeners have not received yet. */
  #unannounced: UncommittedEntry[] = []
  #announcing = false
  #links: RowLinker | null = null
  #show = ({ text }: { kind: string; text: string }): string => text
  readonly #rows = new Map<number, { entries: PackedText; row: PackedRow }>()
  readonly #contexts = new WeakMap<object, ContextJson>()

  constructor(database: Database, now: () => number, { hider = hidesNothing, mask }: { hider?: SecretHider; mask?: TextMask } = {}) {
    this.#database = database
    this.#now = now
    this.#hider = hider
    this.masks = new Masks(mask)
    const newest = database.first<LogRow & { at: number }>('SELECT seq, at, entries FROM log ORDER BY seq DESC LIMIT 1')
    this.#latest_at = newest?.at ?? 0
    this.#last = newest ? newest.seq + linesOf(newest.entries).lines.length - 1 : database.read('log_floor', 0)
  }

  get last(): number {
    return this.#last
  }

  /**
   * Masks redacted fields. Returns the same value if it has none. Texts of the trace that quote
   * them are masked from now on.
   */
  clean(value: unknown, trace_id?: string): unknown {
    return this.masks.clean(value, trace_id)
  }

  /** Masks the deployment's secrets in a text. */
  hide(text: string): string {
    return this.#hider.text(text)
  }

  cleanContext(value: object, json: ContextJson): unknown {
    const clean = this.clean(value)
    if (clean === value) this.#contexts.set(value, json)
    return clean
  }

  /** Sets how entries are shown: fields may have become secret since they were written. */
  showBy(show: (entry: { kind: string; text: string }) => string): void {
    this.#show = show
  }

  /** Sets how a row is linked with the row before. */
  linkBy(links: RowLinker): void {
    this.#links = links
  }

  /** The hashes of a linked row's entries, which stay once masks have changed what it shows. */
  leavesOf(chain: ArrayBuffer, texts: UnlinkedRow['texts']): readonly string[] {
    return this.#links?.leaves(chain, texts) ?? []
  }

  listen(listener: LogListener): void {
    this.#listeners.push(listener)
  }

  /** Compares the clock of a unit of work with the newest entry, or a later unit. */
  begin(now: number): void {
    if (now < this.#latest_at) this.setBack(this.#latest_at - now)
    this.#latest_at = now
  }

  /** Appends entries for `Unit.log`, at the time of the unit. Returns the `seq` of the first. */
  append(entries: readonly NewEntry[], now = this.#now()): number {
    const first = this.#last + 1
    const at = new Date(now).toISOString()
    for (const appended of entries) {
      const entry = this.masks.entry(withoutMarks(appended))
      const line = lineOf({ seq: (this.#last += 1), at, ...entry }, this.#contextOf(entry))
      const text = this.#hider.text(line.text)
      this.#unwritten.push(text === line.text ? line : { seq: line.seq, text })
      this.#unannounced.push({ seq: line.seq, at: now, text, entry })
    }
    return first
  }

  /** Entries of the open unit, which nobody follows before they are committed. */
  get uncommitted(): readonly UncommittedEntry[] {
    return this.#unannounced
  }

  /**
   * Passes the entries of a unit to the listeners, after its commit. Entries that a listener's own
   * unit appends follow once all listeners have these.
   */
  announce(): void {
    if (this.#announcing) return
    this.#announcing = true
    try {
      while (this.#unannounced.length > 0) {
        const entries = this.#unannounced
        this.#unannounced = []
        for (const listener of this.#listeners) listener(entries)
      }
    } finally {
      this.#announcing = false
    }
  }

  /**
   * Writes the open unit's entries to the table, at its end or before they are read, with the
   * counts of the unit. False if there was no entry to write them with.
   */
  write(counts: string | null = null): boolean {
    if (this.#unwritten.length === 0) return false
    const entries = this.#unwritten
    this.#unwritten = []
    let from = 0
    let bytes = 0
    let rest = counts
    let seen = new Set<string>()
    for (const [index, line] of entries.entries()) {
      bytes += addedSize(line, seen)
      if (bytes < ROW_BYTES && index < entries.length - 1) continue
      this.#insert(entries.slice(from, index + 1), rest)
      ;[from, bytes, rest, seen] = [index + 1, 0, null, new Set()]
    }
    return true
  }

  /** Entries of a unit that has failed, or waits for the next, are not written alone. */
  #writeFirst(): void {
    if (this.#unwritten.length > 0) this.#database.precede(() => this.write())
  }

  #insert(lines: readonly PackedLine[], counts: string | null): void {
    const [seq, at] = [lines[0]?.seq ?? 0, this.#now()]
    const texts = lines.map(({ text, context }) => ({ text, split: context?.start ?? null }))
    const link = this.#links?.link({ seq, at, texts })
    // Bound, not as JSON: SQLite would parse each entry and write it again.
    const sql = 'INSERT INTO log (seq, at, counts, entries, chain, head) VALUES (?, ?, ?, ?, ?, ?)'
    this.#database.allHidden(sql, seq, at, counts, rowOf(lines), link?.chain ?? null, link?.head ?? null)
  }

  #contextOf(entry: NewEntry): ContextJson | undefined {
    const context = 'context' in entry ? entry.context : null
    return typeof context === 'object' && context !== null ? this.#contexts.get(context) : undefined
  }

  /** Reads entries between `after` and `before` as JSON text, oldest first. */
  read(after: number, limit: number, before = Number.MAX_SAFE_INTEGER, bytes: number = limits.page_bytes): Text[] {
    return this.find(() => true, { after, limit, before, bytes }).found
  }

  /**
   * Like `read`, for the entries that match, which see no contexts. All until `reached` were looked
   * at. `contexts`: false if the caller does not read them.
   */
  find(
    matches: (text: string) => boolean,
    {
      after,
      limit,
      before = Number.MAX_SAFE_INTEGER,
      bytes = limits.page_bytes,
      contexts = true,
    }: { after: number; limit: number; contexts?: boolean | undefined } & Partial<Bounds>,
  ): { found: Text[]; reached: number } {
    const found: Text[] = []
    let size = 0
    let looked = 0
    let reached = after
    for (const { seq, line, row } of this.#from(after + 1)) {
      if (seq >= before) break
      if (found.length >= limit || size >= bytes || looked >= MOST_LOOKED_AT) return { found, reached }
      ;[looked, reached] = [looked + 1, seq]
      if (!matches(line)) continue
      const text = contexts ? decoded(line, row) : withoutContext(line, row)
      size += byteLength(text)
      found.push({ seq, text: this.shown(text) })
    }
    // Retention may have deleted the last entries of the range: whoever reads on would never end.
    return { found, reached: Math.max(reached, Math.min(this.#last, before - 1)) }
  }

  shown(text: string): string {
    return this.#show({ kind: kindOf(text), text })
  }

  entries(seq: number, most: number): LogEntry[] {
    const found: LogEntry[] = []
    for (const { line, row } of this.#from(seq)) {
      if (found.length === most) break
      found.push(JSON.parse(decoded(line, row)) as LogEntry)
    }
    return found
  }

  /** Entries of a trace in a part of the log, oldest first; the next part is after `next`. */
  ofTrace(trace_id: string, after: number): { entries: LogEntry[]; next: number | null } {
    const named = `"trace_id":"${trace_id}"`
    const entries: LogEntry[] = []
    let size = 0
    for (const { seq, line, row } of this.#from(after + 1)) {
      if (line.includes(named)) {
        const text = this.shown(decoded(line, row))
        size += text.length
        entries.push(JSON.parse(text) as LogEntry)
      }
      if (seq - after >= SEARCHED_AT_ONCE || size >= READ_AT_ONCE)
        return { entries: entries.filter((entry) => entry.trace_id === trace_id), next: seq }
    }
    return { entries: entries.filter((entry) => entry.trace_id === trace_id), next: null }
  }

  *#from(first: number): Iterable<{ seq: number; line: string; row: PackedRow }> {
    this.#writeFirst()
    const sql = 'SELECT seq, entries FROM log WHERE seq >= coalesce((SELECT max(seq) FROM log WHERE seq <= ?1), 0) ORDER BY seq'
    for (const { seq: start, entries } of this.#database.each<LogRow>(sql, first)) {
      const row = this.#row(start, entries)
      for (let index = Math.max(0, first - start); index < row.lines.length; index++)
        yield { seq: start + index, line: row.lines[index] ?? '', row }
    }
  }

  /** After a rollback, the same place may hold another row. */
  #row(start: number, entries: PackedText): PackedRow {
    const kept = this.#rows.get(start)
    const row = kept && samePacked(kept.entries, entries) ? kept.row : linesOf(entries)
    this.#rows.delete(start)
    this.#rows.set(start, { entries, row })
    const [oldest] = this.#rows.keys()
    if (oldest !== undefined && this.#rows.size > ROWS_KEPT) this.#rows.delete(oldest)
    return row
  }

  oldest(): number | null {
    this.#writeFirst()
    return this.#database.first<{ at: number }>('SELECT at FROM log ORDER BY seq LIMIT 1')?.at ?? null
  }

  entry(seq: number): LogEntry | null {
    const [entry] = this.entries(seq, 1)
    return entry?.seq === seq ? entry : null
  }
}

/** The JSON of a value without redacted values. */
export function cleanedJson(json: string, log: Pick<Log, 'clean'>): string {
  const value: unknown = JSON.parse(json)
  const shown = log.clean(value)
  return shown === value ? json : JSON.stringify(shown)
}

export type LogRow = { seq: number; entries: PackedText }

/** `event-accepted` and `call-received` have them as their own fields. */
function withoutMarks(entry: NewEntry): NewEntry {
  if (entry.marks === undefined) return entry
  const { marks: _passed_on, ...rest } = entry
  return rest
}

function lineOf(entry: LogEntry, context: ContextJson | undefined): PackedLine {
  const { seq } = entry
  if (context === undefined) return { seq, text: boundedEntry(JSON.stringify(entry), entry) }
  const head = `${JSON.stringify({ ...entry, context: undefined }).slice(0, -1)},"context":`
  const whole = `${head}${context.text}}`
  const text = boundedEntry(whole, entry)
  return text === whole ? { seq, text, context: { start: head.length, pieces: context.pieces } } : { seq, text }
}

/** Quotes within strings are escaped, so that the first match is the entry's own field. */
const kindOf = (text: string): string => /"kind":"([^"]*)"/.exec(text)?.[1] ?? ''

/** Traces whose values are remembered, and values of each. */
const MOST_TRACES = 200
const MOST_VALUES = 200
const MOST_AT_ONCE = 1000
/** Shorter values occur in other texts by chance; longer ones cost too much to search. */
const SHORTEST = 4
const LONGEST = 10_000

/** Fields that identify things, which a value chosen by a publisher must not change. */
const IDENTIFIES =
  /(?:^|_)(?:id|ids|hash|kind|at|seq|seqs|by|type)$|^(?:prompt|basis|tool|agent|model|status|state|via|verdict|stage|call|considered|act|key|name)$/

type Known = { values: Set<string>; hider: SecretHider | null }

/**
 * Masks fields by their names. Remembers their values by trace: a model or a tool may quote them in
 * the texts of the same trace.
 */
export class Masks {
  readonly #mask: TextMask
  readonly #traces = new Map<string, Known>()
  #redact: ReturnType<typeof redactor>
  /** The texts that are masked in each event. */
  #events = new WeakMap<object, readonly string[]>()

  constructor(mask: TextMask = plainMask) {
    this.#mask = mask
    this.#redact = redactor([], maskOnce(mask), pastedSecrets)
  }

  /** Sets the names of fields that are masked beside the usual ones, and what is pasted. */
  redact({ redact, pasted_secrets }: Pick<Settings, 'redact' | 'pasted_secrets'>): void {
    this.#redact = redactor(redact, maskOnce(this.#mask), pasted_secrets === 'keep' ? undefined : pastedSecrets)
    this.#events = new WeakMap()
  }

  /** Quotes of what the trace redacts come first: a replay has them as the event shows them. */
  clean(value: unknown, trace_id?: string): unknown {
    const quoted = trace_id === undefined ? value : this.of(trace_id).value(value)
    const clean = this.#redact(quoted)
    if (clean !== quoted && trace_id !== undefined) this.#learn(trace_id, maskedTexts(quoted, clean))
    return clean
  }

  /** Texts of the trace may quote these events. */
  mayQuote(trace_id: string, events: readonly object[]): void {
    for (const event of events) {
      const texts = this.#textsOf(event)
      if (texts.length > 0) this.#learn(trace_id, texts)
    }
  }

  /** Masks what these events and all remembered traces redact, of which the newest count. */
  ofAll(events: readonly object[]): SecretHider {
    const traces = Array.from(this.#traces.values(), ({ values }) => [...values])
    const texts = [...events.map((event) => this.#textsOf(event)), ...traces].flat()
    return quoteHider([...new Set(texts)].slice(-MOST_AT_ONCE), SHORTEST, this.#mask)
  }

  #textsOf(event: object): readonly string[] {
    let texts = this.#events.get(event)
    if (!texts) this.#events.set(event, (texts = maskedTexts(event, this.#redact(event))))
    return texts
  }

  #learn(trace_id: string, texts: readonly string[]): void {
    const found = texts.filter(({ length }) => length >= SHORTEST && length <= LONGEST)
    if (found.length === 0) return
    const known = this.#traces.get(trace_id) ?? { values: new Set(), hider: null }
    for (const text of found) {
      if (known.values.has(text) || known.values.size >= MOST_VALUES) continue
      known.values.add(text)
      known.hider = null
    }
    this.#traces.delete(trace_id)
    this.#traces.set(trace_id, known)
    const [oldest] = this.#traces.keys()
    if (this.#traces.size > MOST_TRACES && oldest !== undefined) this.#traces.delete(oldest)
  }

  /** Masks the values of a trace. */
  of(trace_id: string): SecretHider {
    const known = this.#traces.get(trace_id)
    return known ? (known.hider ??= quoteHider([...known.values], SHORTEST, this.#mask)) : hidesNothing
  }

  /** Masks in the texts of an entry, not in what identifies it. */
  entry(entry: NewEntry): NewEntry {
    const hider = this.of(entry.trace_id)
    // Most traces redact nothing: their entries, which may be long, are not written out to search.
    if (hider === hidesNothing || !hider.finds(JSON.stringify(entry))) return entry
    const path: (string | number)[] = []
    const isKept = () => IDENTIFIES.test(String(path.findLast((name) => typeof name === 'string')))
    return mapJson(entry, (value) => (typeof value === 'string' && !isKept() ? hider.text(value) : value), { path }) as NewEntry
  }
}

/** Shorter fields are always kept: they identify the entry. */
const IDENTIFYING_BYTES = 1000

/**
 * Limits an entry's JSON to one SQL value by replacing its largest fields with their size and hash.
 * Otherwise a failed log write would roll back the recorded change.
 */
function boundedEntry(text: string, entry: LogEntry): string {
  if (fitsBytes(text, limits.log_entry_bytes)) return text
  const fields = Object.entries(entry).map(([name, value]) => {
    const json = JSON.stringify(value) ?? 'null'
    return { name, value, json, bytes: byteLength(json) }
  })
  const largest = fields.toSorted((one, other) => other.bytes - one.bytes)
  const kept: Record<string, unknown> = { ...entry }
  let excess = byteLength(text) - limits.log_entry_bytes
  for (const { name, value, json, bytes } of largest) {
    if (excess <= 0 || bytes <= IDENTIFYING_BYTES) break
    kept[name] = notLogged(value, json, bytes)
    excess -= bytes - IDENTIFYING_BYTES
  }
  return JSON.stringify(kept)
}

/** A string stays a string, so that the field keeps its type. */
function notLogged(value: unknown, json: string, bytes: number): unknown {
  const sha256 = createHash('sha256').update(json).digest('hex')
  return typeof value === 'string' ? `[not logged: ${bytes} bytes, sha256 ${sha256}]` : { not_logged: { bytes, sha256 } }
}

/**
 * An entry as JSON. `start`: where its context begins, the last field. `pieces`: its text, of which
 * other contexts may repeat each second one.
 */
type PackedLine = { seq: number; text: string; context?: { start: number; pieces: readonly string[] } }
/** The lines of a row as stored, and the texts that references in them stand for. */
type PackedRow = { lines: readonly string[]; repeated: readonly string[] }

/**
 * JSON text holds no line breaks, tabs and form feeds: a row splits without parsing, and a
 * reference cannot be part of an entry.
 */
const SEPARATOR = ',\n'
const END = ']\n'
const CONTEXT = '\f'
const REFERENCE = /\t(\d+)\t|\f/g
const referenceTo = (place: number): string => `\t${place}\t`

const sharedIn = ({ context }: PackedLine): string[] => context?.pieces.filter((_, index) => index % 2 === 1) ?? []

/** Size of a line in a row that has the texts in `seen`, to which it adds its own. */
function addedSize(line: PackedLine, seen: Set<string>): number {
  let size = line.text.length
  for (const one of sharedIn(line)) {
    if (seen.has(one)) size -= one.length
    else seen.add(one)
  }
  return size
}

/**
 * A row of lines. A text that contexts repeat, such as an event, is stored once, after the lines:
 * a row needs no other row to be read.
 */
function rowOf(lines: readonly PackedLine[]): PackedText {
  const seen = new Set<string>()
  const places = new Map<string, number>()
  for (const one of lines.flatMap(sharedIn)) {
    if (!seen.has(one)) seen.add(one)
    else if (!places.has(one)) places.set(one, places.size)
  }
  const row = `[${lines.map((line) => encoded(line, places)).join(SEPARATOR)}]`
  return pack(places.size === 0 ? row : `${row}\n${[...places.keys()].join('\n')}`)
}

function encoded({ text, context }: PackedLine, places: ReadonlyMap<string, number>): string {
  if (!context) return text
  const json = context.pieces.map((piece, index) => {
    const place = index % 2 === 1 ? places.get(piece) : undefined
    return place === undefined ? piece : referenceTo(place)
  })
  return `${text.slice(0, context.start)}${CONTEXT}${json.join('')}}`
}

export function linesOf(entries: PackedText): PackedRow {
  const row = unpack(entries)
  const end = row.indexOf(END)
  const repeated = end < 0 ? [] : row.slice(end + END.length).split('\n')
  return { lines: row.slice(1, end < 0 ? -1 : end).split(SEPARATOR), repeated }
}

/** The entry as it was appended. */
const decoded = (line: string, { repeated }: PackedRow): string =>
  line.includes(CONTEXT)
    ? line.replaceAll(REFERENCE, (_, place?: string) => (place === undefined ? '' : (repeated[Number(place)] ?? '')))
    : line

/** The entry as it was appended, and where its context begins. */
export function textOf(line: string, row: PackedRow): UnlinkedRow['texts'][number] {
  const split = line.indexOf(CONTEXT)
  return { text: decoded(line, row), split: split < 0 ? null : split }
}

/** The entry, with null as its context if that can be cut off without decoding. */
function withoutContext(line: string, row: PackedRow): string {
  const start = line.indexOf(CONTEXT)
  return start < 0 ? decoded(line, row) : `${line.slice(0, start)}null}`
}

/** Text as a row keeps it: compressed, unless it is short. */
export type PackedText = string | ArrayBuffer

const UNPACKED = 1000

/** Entries repeat names and ids. A higher level saves a tenth, and takes twice the time. */
export function pack(text: string): PackedText {
  if (text.length < UNPACKED) return text
  const { buffer, byteOffset, byteLength } = deflateRawSync(text, { level: 3 })
  return buffer.slice(byteOffset, byteOffset + byteLength)
}

const samePacked = (one: PackedText, other: PackedText): boolean =>
  typeof one === 'string' || typeof other === 'string' ? one === other : Buffer.from(one).equals(Buffer.from(other))

export const unpack = (packed: PackedText): string => (typeof packed === 'string' ? packed : inflateRawSync(packed).toString())

/** A committed entry, its place in the log, and the time of its unit in ms. */
export type Committed = { seq: number; at: number; entry: NewEntry }

export type Follows = {
  name: string
  /** The last entry that it has on disk: the log after it is followed again on waking. */
  from: number
  /** Gets entries in order. What it writes is one transaction with its own `from`. */
  follow: (entries: readonly Committed[]) => void
  /** The next unit stores these with its own changes: they include what was followed before it. */
  changes?: () => StateWrite[]
}

type LogFollowerParts = { log: Pick<Log, 'last' | 'entries' | 'listen'>; scope: string }

/**
 * Passes committed entries to those that follow the log: from memory while the object lives, from
 * the stored log after a death. A unit is never undone because of them: a follower that dies is
 * behind, and one that fails leaves these entries out.
 */
export class LogFollower {
  readonly #parts: LogFollowerParts
  readonly #all: Follows[] = []

  constructor(parts: LogFollowerParts) {
    this.#parts = parts
    parts.log.listen((entries) => {
      for (const one of this.#all) this.#pass(one, entries)
    })
  }

  /** Adds a follower, which first gets what it has missed. */
  add(one: Follows): void {
    const { log } = this.#parts
    const missed = one.from < log.last ? log.entries(one.from + 1, Number.POSITIVE_INFINITY) : []
    this.#pass(
      one,
      missed.map((entry) => ({ seq: entry.seq, at: Date.parse(entry.at), entry })),
    )
    this.#all.push(one)
  }

  changes(): StateWrite[] {
    return this.#all.flatMap((one) => one.changes?.() ?? [])
  }

  #pass(one: Follows, entries: readonly Committed[]): void {
    if (entries.length === 0) return
    try {
      one.follow(entries)
    } catch (error) {
      const first = entries.at(0)?.seq
      const last = entries.at(-1)?.seq
      logError({ message: 'log entries were not followed', by: one.name, scope: this.#parts.scope, first, last, error })
    }
  }
}
