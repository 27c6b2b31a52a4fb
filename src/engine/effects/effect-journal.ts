import type { JournalEntry, Phase, StepEnd } from '../../skills/runner/ports.ts'
import { type Json, byteLength } from '../../base/json.ts'
import { limits } from '../../base/limits.ts'
import { type Action, MOST_ACTS } from '../../contract/action.ts'
import type { Database, Unit } from '../../kernel/unit.ts'
import type { WorkState, KeyedOutput } from '../../contract/scope-api.ts'
import { type EffectPlace, ownerOfRun, isCallKey, type EffectResult } from './effect.ts'
import { type ToolDefinition, argumentsHash, isGlobalKey, namedBy } from '../../tools/define-tool.ts'
import type { Reflexes } from '../reflexes/wiring.ts'
import { createHash } from 'node:crypto'

const SEQUENCE = 'sequence:'

/** The key of the job of a sequence, by the log entry of its firing. */
export const sequenceKey = (log_seq: number): string => `${SEQUENCE}${log_seq}`
/** The owner of the journal rows of an act of a sequence. */
export const actOwner = (key: string, place: number): string => `${key}:${place}`
/** The owners of all its acts. */
export const actOwners = (key: string): string[] => Array.from({ length: MOST_ACTS }, (_, place) => actOwner(key, place))
export const isOfSequence = (owner: string): boolean => owner.startsWith(SEQUENCE)

/** An act of a sequence that is no call of a tool, as it was done. */
export type KeptAct = { action: Action; output: Json }

/** `unknown`: it may have happened. `repeated`: it was unknown and ran again under its key. */
type RowStatus = 'started' | 'ok' | 'failed' | 'unknown' | 'repeated' | 'skipped' | 'timeout'
export type RecordedEffect = { id: string; status: RowStatus; output: string | null; error: string | null; key?: string | null }
type NewEffect = EffectPlace & { tool: string; arguments_hash: string; key: string | null; log_seq: number; started_at: number }
/** An effect that a crash cut off. `log_seq` is its first log entry. */
type LostEffect = { id: string; tool: string; key: string | null; log_seq: number }

const ID = `owner || '/' || CASE phase WHEN 'call' THEN '' ELSE phase || '/' END || place`

/** Unique within the scope. A retried step keeps its id. */
export const effectId = ({ owner, phase, place }: EffectPlace): string => `${owner}/${phase === 'call' ? '' : `${phase}/`}${place}`

/**
 * The journal of effects and of plan steps: a row is written before and after each call (G8).
 * `step` is a step's own end.
 */
export class EffectJournal {
  readonly #database: Database
  readonly #done_keys: DoneKeys

  constructor({ database, done_keys }: { database: Database; done_keys: DoneKeys }) {
    this.#database = database
    this.#done_keys = done_keys
  }

  nextPlace(owner: string): EffectPlace {
    const sql = `SELECT max(place) AS place FROM effects WHERE owner = ? AND phase = 'call'`
    const last = this.#database.first<{ place: number | null }>(sql, owner)?.place
    return { owner, phase: 'call', place: last == null ? 0 : last + 1 }
  }

  begin(unit: Unit, { owner, phase, place, tool, arguments_hash, key, log_seq, started_at }: NewEffect): void {
    if (key !== null) {
      // Move the key to the row that runs under it now; the old row may be another run's step.
      const sql = `UPDATE effects SET idempotence_key = NULL, status = CASE status WHEN 'unknown' THEN 'repeated' ELSE status END
          WHERE tool = ?1 AND idempotence_key = ?2 AND (owner, phase, place) <> (?3, ?4, ?5)`
      unit.all(sql, tool, key, owner, phase, place)
    }
    unit.all(
      `INSERT INTO effects (owner, phase, place, tool, arguments_hash, idempotence_key, status, log_seq, started_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'started', ?7, ?8) ON CONFLICT (owner, phase, place) DO UPDATE
        SET status = 'started', idempotence_key = ?6, log_seq = ?7, started_at = ?8, ended_at = NULL, output = NULL, error = NULL`,
      owner,
      phase,
      place,
      tool,
      // Only calls without a key of their tool are looked up by their arguments. The turn that
      // follows a sequence knows no key of its acts.
      phase === 'call' && (key === null || isCallKey(key) || owner.startsWith(SEQUENCE)) ? arguments_hash : null,
      key,
      log_seq,
      started_at,
    )
  }

  end(unit: Unit, { owner, phase, place }: EffectPlace, { status, output, error }: EffectResult, step?: StepEnd): void {
    const kept = step ? stepColumns(step) : { step: null, output: JSON.stringify(output ?? null) }
    const sql = `UPDATE effects SET status = ?4, output = ?5, error = ?6, step = ?7, ended_at = ?8 WHERE owner = ?1 AND phase = ?2 AND place = ?3`
    unit.all(sql, owner, phase, place, status, kept.output, step ? null : error, kept.step, unit.now)
  }

  /** Records the end of a step without an effect of its own. */
  endStep(unit: Unit, { owner, phase, place }: EffectPlace, end: StepEnd): void {
    const { step, output } = stepColumns(end)
    const sql = `INSERT INTO effects (owner, phase, place, status, output, step, started_at, ended_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)
        ON CONFLICT (owner, phase, place) DO UPDATE SET output = ?5, step = ?6`
    unit.all(sql, owner, phase, place, end.status, output, step, unit.now)
  }

  /** Marks unfinished effects as `unknown` after a crash. */
  loseStarted(unit: Unit, error: string): LostEffect[] {
    const sql = `UPDATE effects SET status = 'unknown', ended_at = ?, error = ? WHERE status = 'started'
        RETURNING ${ID} AS id, tool, idempotence_key AS key, log_seq`
    return unit.all<LostEffect>(sql, unit.now, error)
  }

  steps(run_id: string): JournalEntry[] {
    const sql = `SELECT phase, place, tool, idempotence_key, output, step, started_at FROM effects WHERE owner = ? ORDER BY phase DESC, place`
    return this.#database
      .all<StepRow>(sql, ownerOfRun(run_id))
      .map(({ phase, place, tool, idempotence_key, output, step, started_at }) => ({
        phase,
        index: place,
        begun: tool === null ? null : { phase, index: place, tool, idempotence_key, at: started_at },
        end: step === null ? null : stepEnd(step, output),
      }))
  }

  /** Also finds keys of effects that retention deleted. */
  byKey(tool: string, key: string): RecordedEffect | undefined {
    const sql = `SELECT ${ID} AS id, status, output, error FROM effects WHERE tool = ? AND idempotence_key = ?`
    const recorded = this.#database.first<RecordedEffect>(sql, tool, key)
    if (recorded) return recorded
    const before = this.#done_keys.find({ kind: 'effect', tool }, key)
    return before && { id: before.id, status: 'ok', output: before.output, error: before.detail }
  }

  /** The state of an effect that holds a deployment-wide key. One that was undone has no key. */
  stateOf({ owner, phase, place }: Pick<EffectPlace, 'owner' | 'place'> & { phase: string }): WorkState {
    const sql = `SELECT status, idempotence_key, output, ended_at FROM effects WHERE owner = ? AND phase = ? AND place = ?`
    const row = this.#database.first<{ status: RowStatus; idempotence_key: string | null; output: string | null; ended_at: number | null }>(
      sql,
      owner,
      phase,
      place,
    )
    if (row?.status === 'started') return { state: 'running' }
    const is_done = row?.status === 'ok' && row.idempotence_key !== null
    return is_done ? { state: 'done', ...keptOutput(row.output, row.ended_at ?? 0) } : { state: 'free' }
  }

  /** True if a call under this key would be answered from the journal. */
  isDone(tool: string, key: string): boolean {
    return this.byKey(tool, key)?.status === 'ok'
  }

  /** True if a call under this key had ended well before this time (ms). */
  wasDone(tool: string, key: string, before: number): boolean {
    const sql = `SELECT ended_at FROM effects WHERE tool = ? AND idempotence_key = ? AND status = 'ok'`
    const recorded = this.#database.first<{ ended_at: number }>(sql, tool, key)
    return recorded ? recorded.ended_at < before : this.isDone(tool, key)
  }

  /** Equal calls without a key of their tool, of earlier turns or with an unknown end. */
  sameCalls(call: { owner: string; earlier: readonly string[]; tool: string | null; arguments_hash: string }): RecordedEffect[] {
    const sql = `SELECT ${ID} AS id, status, output, error, idempotence_key AS key FROM effects
        WHERE owner IN (SELECT value FROM json_each(?1) UNION ALL SELECT ?2) AND phase = 'call' AND tool IS ?3 AND arguments_hash = ?4
        AND (status = 'unknown' OR status = 'ok' AND owner IN (SELECT value FROM json_each(?1))) ORDER BY started_at, place`
    return this.#database.all<RecordedEffect>(sql, JSON.stringify(call.earlier), call.owner, call.tool, call.arguments_hash)
  }

  /** The latest same call of earlier acts that failed. */
  failedRead(call: { earlier: readonly string[]; tool: string; arguments_hash: string }): Pick<RecordedEffect, 'error'> | undefined {
    const sql = `SELECT error FROM effects WHERE owner IN (SELECT value FROM json_each(?1)) AND phase = 'call' AND tool = ?2
        AND arguments_hash = ?3 AND status = 'failed' ORDER BY started_at DESC, place DESC LIMIT 1`
    return this.#database.first(sql, JSON.stringify(call.earlier), call.tool, call.arguments_hash)
  }

  /** The tools of the owner's possible effects without a key. */
  unknownTools(owner: string): string[] {
    const sql = `SELECT tool FROM effects WHERE owner = ? AND status IN ('unknown', 'started') AND idempotence_key IS NULL`
    return this.#database.all<{ tool: string }>(sql, owner).map(({ tool }) => tool)
  }

  /**
   * Records an act of a sequence that is no call of a tool, which is done: a later attempt does it
   * no more.
   */
  keepAct(unit: Unit, owner: string, { action, output }: KeptAct): void {
    const whole = JSON.stringify({ action, output })
    const kept = whole.length > limits.sql_json_bytes ? JSON.stringify({ action, output: null }) : whole
    const sql = `INSERT INTO effects (owner, phase, place, arguments_hash, status, output, started_at, ended_at) VALUES (?1, 'call', ?2, ?3, 'ok', ?4, ?5, ?5)`
    unit.all(sql, owner, this.nextPlace(owner).place, argumentsHash(action), kept, unit.now)
  }

  /** The same act, done by one of these owners. `answered`: the ids of those that count no more. */
  keptAct(earlier: readonly string[], action: Action, answered: ReadonlySet<string>): { id: string; output: Json } | undefined {
    const same = this.sameCalls({ owner: '', earlier, tool: null, arguments_hash: argumentsHash(action) })
    const found = same.find(({ id }) => !answered.has(id))
    return found && { id: found.id, output: (JSON.parse(found.output ?? 'null') as KeptAct).output }
  }

  /** The acts of these owners. `tool`: null for a `KeptAct`. `log_seq`: where it began. */
  doneBy(owners: readonly string[]): { tool: string | null; output: unknown; log_seq: number | null }[] {
    const sql = `SELECT tool, output, log_seq FROM effects WHERE owner IN (SELECT value FROM json_each(?)) AND phase = 'call' AND status = 'ok'
        ORDER BY started_at, owner, place`
    if (owners.length === 0) return []
    const rows = this.#database.all<{ tool: string | null; output: string | null; log_seq: number | null }>(sql, JSON.stringify(owners))
    return rows.map(({ output, ...row }) => ({ ...row, output: JSON.parse(output ?? 'null') as unknown }))
  }

  lastOf(owner: string): { status: RowStatus; idempotence_key: string | null } | undefined {
    const sql = `SELECT status, idempotence_key FROM effects WHERE owner = ? AND phase = 'call' ORDER BY place DESC LIMIT 1`
    return this.#database.first(sql, owner)
  }

  /** Marks unknown effects without a key as failed. */
  assumeFailed(unit: Unit, owners: readonly string[], error: string): void {
    const sql = `UPDATE effects SET status = 'failed', error = ?2 WHERE status = 'unknown' AND idempotence_key IS NULL
        AND owner IN (SELECT value FROM json_each(?1))`
    unit.allOf(owners, sql, error)
  }

  /** Releases the key of a successful effect. */
  releaseKey(unit: Unit, tool: string, key: string): void {
    if (this.#done_keys.release({ kind: 'effect', tool }, key)) return
    unit.all(`UPDATE effects SET idempotence_key = NULL WHERE tool = ? AND idempotence_key = ? AND status = 'ok'`, tool, key)
  }

  /** Releases a key that a reflex gave, and those that it makes of it for calls with outputs. */
  releaseGiven(unit: Unit, tool: string, key: string): void {
    this.releaseKey(unit, tool, key)
    const sql = `UPDATE effects SET idempotence_key = NULL WHERE tool = ?1 AND idempotence_key > ?2 || ' ' AND idempotence_key < ?2 || '!' AND status = 'ok'`
    unit.all(sql, tool, key)
  }

  /** Deletes effects that began before `before`. Keys of successful ones are kept longer. */
  forget(unit: Unit, before: number, limit: number): number {
    const sql = `DELETE FROM effects WHERE (owner, phase, place) IN
        (SELECT owner, phase, place FROM effects WHERE started_at < ? AND status <> 'started'
          AND owner NOT IN (SELECT 'run:' || key FROM jobs WHERE kind = 'run') LIMIT ?)
        RETURNING tool, status, idempotence_key, output, ended_at AS at`
    const gone = unit.all<DoneRow & { tool: string; status: string }>(sql, before, limit)
    const keyed = gone.filter(({ status, idempotence_key }) => status === 'ok' && idempotence_key !== null)
    for (const [tool, rows] of Map.groupBy(keyed, ({ tool }) => tool)) this.#done_keys.keep({ kind: 'effect', tool }, rows)
    return gone.length
  }
}

type StepRow = {
  phase: Phase
  place: number
  tool: string | null
  idempotence_key: string | null
  output: string | null
  step: string | null
  started_at: number
}

/** The output has its own column, where a call under the same key finds it. */
function stepColumns({ output, ...end }: StepEnd): { step: string; output: string | null } {
  if (output?.kind === 'json') return { step: JSON.stringify(end), output: JSON.stringify(output.value) }
  return { step: JSON.stringify({ ...end, ...(output && { output }) }), output: null }
}

function stepEnd(step: string, output: string | null): StepEnd {
  const end = { output: null, ...(JSON.parse(step) as Partial<StepEnd>) } as StepEnd
  return output === null || end.output !== null ? end : { ...end, output: { kind: 'json', value: JSON.parse(output) as Json } }
}

type UndoParts = Pick<Reflexes, 'scope' | 'action_keys' | 'toolbox'> & {
  journal: EffectJournal
  global_keys: { release: (unit: Unit, of: { kind: 'effect'; tool: string }, key: string) => void }
}

/**
 * Releases the key of an undone effect, so that it may happen again. Called in the unit that ends
 * the undo tool. Effects of unknown outcome keep their key.
 */
export function releaseUndone(
  unit: Unit,
  { scope, journal, toolbox, action_keys, global_keys }: UndoParts,
  { undoes }: ToolDefinition,
  input: unknown,
): void {
  const undone = undoes && toolbox.all[undoes.tool]
  if (!undoes || !undone) return
  const fields = Object.entries(input as Record<string, unknown>).filter(([name]) => undoes.match.includes(name))
  const key = undone.idempotence_key?.(Object.fromEntries(fields), scope)
  if (key !== undefined && isGlobalKey(key)) global_keys.release(unit, { kind: 'effect', tool: undoes.tool }, key)
  if (key !== undefined) journal.releaseKey(unit, undoes.tool, key)
  const given = action_keys.release(unit, undoes.tool, key ?? namedBy(undoes.match, input))
  for (const of_reflex of given) journal.releaseGiven(unit, undoes.tool, of_reflex)
}

/** An effect's key belongs to its tool. A plan's key is unique by itself. */
export type KeyOwner = { kind: 'effect'; tool: string } | { kind: 'plan' }
/** `detail` explains an output that is missing. */
export type DoneBefore = { id: string; output: string | null; detail: string | null }
export type DoneRow = { idempotence_key: string; output: string | null; at: number }

/** Enough for an id or an address as JSON. Until retention, the journal has the whole output. */
const KEPT_BYTES = 256
/** 128 bits. */
const HASH_CHARACTERS = 22

/**
 * Idempotency keys that outlive their journal rows, for `idempotence_days`. Rows hold only hashes,
 * because keys may contain personal data.
 */
export class DoneKeys {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  find(of: KeyOwner, key: string): DoneBefore | undefined {
    const sql = 'SELECT output, output_bytes, at FROM done_keys WHERE hash = ?'
    const row = this.#database.first<{ output: string | null; output_bytes: number; at: number }>(sql, hashOf(of, key))
    if (!row) return undefined
    return doneBefore(hashOf(of, key), row, 'is older than the scope retains it')
  }

  /** Call it in the unit that deletes the keys from the journal. */
  keep(of: KeyOwner, rows: readonly DoneRow[]): void {
    if (rows.length === 0) return
    const kept = rows.map(({ idempotence_key, output, at }) => ({ hash: hashOf(of, idempotence_key), ...keptOutput(output, at) }))
    const sql = `INSERT OR REPLACE INTO done_keys (hash, output, output_bytes, at)
        SELECT value->>'hash', value->>'output', value->>'output_bytes', value->>'at' FROM json_each(?)`
    this.#database.all(sql, JSON.stringify(kept))
  }

  /** Releases the key of undone work. Returns false for an unknown key. */
  release(of: KeyOwner, key: string): boolean {
    return this.#database.all('DELETE FROM done_keys WHERE hash = ? RETURNING hash', hashOf(of, key)).length > 0
  }

  forget(before: number, limit: number): number {
    const sql = 'DELETE FROM done_keys WHERE hash IN (SELECT hash FROM done_keys WHERE at < ? ORDER BY at LIMIT ?) RETURNING hash'
    return this.#database.all(sql, before, limit).length
  }

  oldest(): number | null {
    return this.#database.first<{ at: number }>('SELECT at FROM done_keys ORDER BY at LIMIT 1')?.at ?? null
  }
}

/** A short output is kept with its key; of a long one, only the length. */
export function keptOutput(output: string | null, at: number): KeyedOutput {
  const output_bytes = byteLength(output ?? 'null')
  return { output: output_bytes <= KEPT_BYTES ? (output ?? 'null') : null, output_bytes, at }
}

/** `missing` explains an output that was not kept. */
export function doneBefore(id: string, { output, output_bytes, at }: KeyedOutput, missing: string): DoneBefore {
  const when = `it was done at ${new Date(at).toISOString()} under this key`
  return { id, output, detail: output === null ? `${when}; its output of ${output_bytes} bytes ${missing}` : null }
}

export function hashOf(of: KeyOwner, key: string): string {
  const text = JSON.stringify([of.kind, of.kind === 'effect' ? of.tool : '', key])
  return createHash('sha256').update(text).digest('base64url').slice(0, HASH_CHARACTERS)
}
