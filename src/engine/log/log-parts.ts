import { partHash } from '../../traces/ids.ts'
import type { Agent } from '../../agent/define-agent.ts'
import { byteLength, fitsBytes, canonicalJson } from '../../base/json.ts'
import { limits } from '../../base/limits.ts'
import { oncePer } from '../../base/once-per.ts'
import { hidesNothing, type SecretHider } from '../../base/secrets.ts'
import { isoDay } from '../../base/time.ts'
import type { ReflexVersion } from '../../contract/reflex.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import type { Env } from '../../env.ts'
import type { ReflexStep } from '../../reflexes/decide.ts'
import type { Database, Unit } from '../../kernel/unit.ts'
import { type Log, pack, unpack, type PackedText } from './log.ts'

const DAY_MS = 86_400_000
const KEPT_LONGER_MS = 2 * DAY_MS
/** Bounds the memory of known hashes. */
const MOST_KNOWN = 5000

/** A value as it is stored; null if it is stored already. */
type StoredPart = { hash: string; text: string | null }
type PartRow = { hash: string; at: number; value: PackedText }
/** `text` is the value's JSON. */
type OldParts = { day: string; rows: { hash: string; at: number; text: string }[] }

/**
 * Values that log entries refer to by their hash, such as the settings in force or a message of a
 * prompt. Each is stored once, without secrets; its hash is computed from the stored value.
 */
export class LogParts {
  readonly #database: Database
  readonly #log: Pick<Log, 'clean' | 'hide'>
  /** When each hash was last written. */
  readonly #written = new Map<string, number>()
  readonly #hashes = new WeakMap<object, string>()

  constructor(database: Database, log: Pick<Log, 'clean' | 'hide'>) {
    this.#database = database
    this.#log = log
  }

  /**
   * Returns the hash of the stored value, or `named`. `quotes` masks
   * what the value quotes. Writes a row if none was written within a day.
   */
  put(unit: Unit, value: object, how: { quotes?: SecretHider; named?: string } = {}): string {
    const part = this.prepare(value, unit.now, how)
    this.keep(unit, part)
    return part.hash
  }

  /** A part that `keep` writes, in a unit that begins later. */
  prepare(value: object, now: number, { quotes = hidesNothing, named }: { quotes?: SecretHider; named?: string } = {}): StoredPart {
    const known = this.#hashes.get(value)
    if (known !== undefined && !this.#isDue(known, now)) return { hash: known, text: null }
    const part = storable(this.#log.hide(canonicalJson(this.#log.clean(quotes.value(value)))), named)
    this.#hashes.set(value, part.hash)
    return part
  }

  keep(unit: Unit, { hash, text }: StoredPart): void {
    if (text === null || !this.#isDue(hash, unit.now)) return
    if (this.#written.size >= MOST_KNOWN) this.#written.clear()
    this.#written.set(hash, unit.now)
    const sql = `INSERT INTO parts (hash, at, value) VALUES (?1, ?2, ?3) ON CONFLICT (hash) DO UPDATE SET at = ?2 WHERE at < ?2 - ${DAY_MS}`
    unit.aside(sql, hash, unit.now, pack(text))
  }

  #isDue(hash: string, now: number): boolean {
    return now - (this.#written.get(hash) ?? Number.NEGATIVE_INFINITY) > DAY_MS
  }

  /** The parts among these hashes that are still stored. */
  read(hashes: readonly string[]): Record<string, unknown> {
    const sql = 'SELECT hash, value FROM parts WHERE hash IN (SELECT value FROM json_each(?1))'
    const rows = this.#database.allOf<{ hash: string; value: PackedText }>(hashes, sql)
    return Object.fromEntries(rows.map(({ hash, value }) => [hash, JSON.parse(unpack(value)) as unknown]))
  }

  /**
   * The parts of one day that `forget` deletes, of `day` if it is given, up to `limit` and `bytes`.
   * Null if there are none.
   */
  oldest(before: number, { day, limit, bytes }: { day: string | null; limit: number; bytes: number }): OldParts | null {
    const from = day === null ? 0 : Date.parse(day)
    const to = day === null ? Number.MAX_SAFE_INTEGER : from + DAY_MS
    const sql = 'SELECT hash, at, value FROM parts WHERE at < ?1 AND at >= ?2 AND at < ?3 ORDER BY at, hash LIMIT ?4'
    const rows: OldParts['rows'] = []
    let size = 0
    for (const { value, ...row } of this.#database.each<PartRow>(sql, before - KEPT_LONGER_MS, from, to, limit)) {
      if (size >= bytes || (rows[0] && isoDay(row.at) !== isoDay(rows[0].at))) break
      const text = unpack(value)
      size += text.length
      rows.push({ ...row, text })
    }
    return rows[0] ? { day: isoDay(rows[0].at), rows } : null
  }

  /** Deletes these parts, except those that were renewed since they were read. */
  remove(unit: Unit, rows: OldParts['rows']): void {
    for (const { hash, at } of rows) {
      unit.all('DELETE FROM parts WHERE hash = ? AND at = ?', hash, at)
      this.#written.delete(hash)
    }
  }

  /** The time that retention counts from for the oldest part; null without parts. */
  keptUntil(): number | null {
    const oldest = this.#database.first<{ at: number | null }>('SELECT min(at) AS at FROM parts')?.at ?? null
    return oldest === null ? null : oldest + KEPT_LONGER_MS
  }

  /** Keeps a part longer than `before` demands: its time is renewed once a day at most. */
  forget(unit: Unit, before: number, limit: number): number {
    const sql = 'DELETE FROM parts WHERE hash IN (SELECT hash FROM parts WHERE at < ? LIMIT ?) RETURNING hash'
    const gone = unit.all<{ hash: string }>(sql, before - KEPT_LONGER_MS, limit)
    for (const { hash } of gone) this.#written.delete(hash)
    return gone.length
  }
}

/** A value that exceeds what a row may hold is stored as its size and hash. */
function storable(text: string, hash = partHash(text)): { text: string; hash: string } {
  if (fitsBytes(text, limits.log_entry_bytes)) return { text, hash }
  return { text: JSON.stringify({ not_logged: { bytes: byteLength(text), hash } }), hash }
}

/** The basis of a scope's decisions. Entries name it by its hash. */
type Basis = { agent: { name: string; version: string | null }; deployment: string | null; settings: Settings }
type BasisParts = { env: Env; agent: () => Agent; settings: () => Settings; log_parts: LogParts }

/** Stores the basis in force, and returns its hash. */
export function basisOf({ env, agent, settings, log_parts }: BasisParts): (unit: Unit) => string {
  let current: Basis | undefined
  return (unit) => {
    const { name, version = null } = agent()
    if (current?.settings !== settings() || current.agent.name !== name)
      current = { agent: { name, version }, deployment: env.CF_VERSION_METADATA?.id ?? null, settings: settings() }
    return log_parts.put(unit, current)
  }
}

/** Keeps the code that ran, for replays: it stays as long as the log that names it. */
export const keepingPrograms = (log_parts: LogParts) => ({
  name: 'replays',
  ran: (unit: Unit, { ran }: Pick<ReflexStep, 'ran'>) => {
    // Every reader of the log would read sealed code.
    if (ran && !ran.version.sealed) log_parts.put(unit, programOf(ran.version), { named: ran.version.hash })
  },
})

const programOf = oncePer(({ id, version, state, code }: ReflexVersion) => ({ id, version, state, code }))
