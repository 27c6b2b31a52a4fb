import { warn } from '../../../base/warn.ts'
import type { UnlinkedRow } from '../../../engine/log/log.ts'
import { CHAIN_FLOOR } from '../../../engine/log/expired-entries.ts'
import type { Database } from '../../../kernel/unit.ts'
import {
  bytesOf,
  headText,
  hex,
  leafOfEntry,
  leavesIn,
  linkIn,
  NOTHING,
  rootOf,
  rowHash,
  saltsOf,
  storedLink,
  type SignedHead,
} from '../chain.ts'
import type { Signer } from '../keys.ts'

const MINUTE_MS = 60_000
const SEED_BYTES = 16

/** The newest row of the log. `seq`: its last entry. */
type Tip = { seq: number; hash: string; minute: number }
type RowLinksParts = { scope: string; database: Pick<Database, 'first' | 'read'>; signer: Signer | null; last: number; now: () => number }

/**
 * Links each row of the log with the row before it, in the row itself. A head is signed after the
 * commit of the first row of a minute, and kept in the next row that is written: it needs neither a
 * row nor an alarm. Who asks for a receipt gets a head of the newest row.
 */
export class RowLinks {
  readonly #parts: RowLinksParts
  #tip: Tip
  /** The tip is to be signed once it is committed. */
  #is_due = false
  /** A head that waits for a row. */
  #signed: SignedHead | null = null

  constructor(parts: RowLinksParts) {
    this.#parts = parts
    this.#tip = tipOf(parts)
  }

  link({ seq, at, texts }: UnlinkedRow): { chain: ArrayBuffer; head: string | null } {
    const seed = crypto.getRandomValues(new Uint8Array(SEED_BYTES))
    const salts = saltsOf(seed, texts.length)
    const root = hex(rootOf(texts.map((text, index) => leafOfEntry(text, salts[index]!))))
    const hash = rowHash(this.#tip.hash, { seq, count: texts.length, root })
    const minute = Math.floor(at / MINUTE_MS)
    this.#is_due ||= minute !== this.#tip.minute
    this.#tip = { seq: seq + texts.length - 1, hash, minute }
    const head = this.#signed && JSON.stringify(this.#signed)
    this.#signed = null
    return { chain: storedLink({ hash, root, seed }), head }
  }

  leaves(chain: ArrayBuffer, texts: UnlinkedRow['texts']): string[] {
    return leavesIn(chain, texts).map(hex)
  }

  /** After the commit of a row. It throws nothing. */
  async committed(): Promise<void> {
    if (!this.#is_due || !this.#parts.signer) return
    this.#is_due = false
    try {
      this.#signed = await this.head()
    } catch (error) {
      warn({ message: 'a head of the log was not signed', scope: this.#parts.scope, error })
    }
  }

  /** Signs the newest row. */
  async head(): Promise<SignedHead | null> {
    const { scope, signer, now } = this.#parts
    const { seq, hash } = this.#tip
    if (!signer || hash === NOTHING) return null
    const at = now()
    return { seq, hash, at, key: signer.key, signature: await signer.sign(headText({ scope, seq, hash, at })) }
  }
}

/** A log whose rows are older than the chain begins it with its next row. */
function tipOf({ database, last }: RowLinksParts): Tip {
  const row = database.first<{ at: number; chain: ArrayBuffer | null }>('SELECT at, chain FROM log ORDER BY seq DESC LIMIT 1')
  const floor = database.read<string | null>(CHAIN_FLOOR, null)
  const newest = row ? row.chain : floor && bytesOf(floor)
  const minute = row ? Math.floor(row.at / MINUTE_MS) : -1
  return { seq: last, hash: newest ? linkIn(newest).hash : NOTHING, minute }
}
