import { createHash } from 'node:crypto'
import { byteLength } from '../../base/byte-length.ts'
import type { Database } from '../database.ts'

/** An effect is of its tool; a plan's key says itself whose it is. */
type Of = { kind: 'effect'; tool: string } | { kind: 'plan' }
/** `detail` says why there is no output where there was one. */
export type DoneBefore = { id: string; output: string | null; detail: string | null }
export type DoneRow = { idempotence_key: string; output: string | null; at: number }

/** As JSON: an id or an address. The journal has more for as long as the scope retains it. */
const KEPT_BYTES = 256
/** 128 bits. */
const HASH_CHARACTERS = 22

/**
 * The keys of what was done, for longer than the journal has the rest of it: an effect with a key happens once for as long as the scope promises that
 * (`idempotence_days`), which is longer than it retains its log. A row is small, and holds no key but its hash: keys may be made of personal data.
 */
export class DoneKeys {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  find(of: Of, key: string): DoneBefore | undefined {
    const row = this.#database.first<{ output: string | null; output_bytes: number; at: number }>(
      'SELECT output, output_bytes, at FROM done_keys WHERE hash = ?',
      hashOf(of, key),
    )
    if (!row) return undefined
    const { output, output_bytes, at } = row
    const when = `it was done at ${new Date(at).toISOString()} under this key`
    const detail = output === null ? `${when}; its output of ${output_bytes} bytes is older than the scope retains it` : null
    return { id: hashOf(of, key), output, detail }
  }

  /** Within the unit of work in which the journal forgets them. */
  keep(of: Of, rows: readonly DoneRow[]): void {
    if (rows.length === 0) return
    const kept = rows.map(({ idempotence_key, output, at }) => {
      const output_bytes = byteLength(output ?? 'null')
      return { hash: hashOf(of, idempotence_key), output: output_bytes <= KEPT_BYTES ? (output ?? 'null') : null, output_bytes, at }
    })
    this.#database.all(
      `INSERT OR REPLACE INTO done_keys (hash, output, output_bytes, at)
        SELECT value->>'hash', value->>'output', value->>'output_bytes', value->>'at' FROM json_each(?)`,
      JSON.stringify(kept),
    )
  }

  /** Has the journal forget effects. What failed, or may have happened, would run again under its key anyway. */
  forgetEffects(before: number, limit: number): number {
    const gone = this.#database.all<DoneRow & { tool: string; status: string }>(
      `DELETE FROM effects WHERE id IN (SELECT id FROM effects WHERE started_at < ? AND status <> 'started' LIMIT ?)
        RETURNING tool, status, idempotence_key, output, ended_at AS at`,
      before,
      limit,
    )
    const keyed = gone.filter(({ status, idempotence_key }) => status === 'ok' && idempotence_key !== null)
    for (const [tool, rows] of Map.groupBy(keyed, ({ tool }) => tool)) this.keep({ kind: 'effect', tool }, rows)
    return gone.length
  }

  /** It was undone: it may be done again. Whether it was there. */
  release(of: Of, key: string): boolean {
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

function hashOf(of: Of, key: string): string {
  const text = JSON.stringify([of.kind, of.kind === 'effect' ? of.tool : '', key])
  return createHash('sha256').update(text).digest('base64url').slice(0, HASH_CHARACTERS)
}
