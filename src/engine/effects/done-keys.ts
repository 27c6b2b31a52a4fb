import { createHash } from 'node:crypto'
import { byteLength } from '../../base/byte-length.ts'
import type { KeyedOutput } from '../../contract/scope-api.ts'
import type { Database } from '../storage/database.ts'

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
