import { backoff, pauses } from '../../base/backoff.ts'
import { withDeadline } from '../../base/deadline.ts'

const FRESH_MS = 30_000
const ABSENT_MS = 5000
const STALE_MS = 600_000
/** Time limit of a lookup with and without a stale entry. D1 has been seen to stall for 25 s. */
const PATIENCE_MS = { stale: 500, absent: 5000 }
const MOST_ENTRIES = 1000

/** `knows`: the key existed at the last lookup. */
export type KeyCache<Row> = { find: Lookup<Row>; knows: (id: string) => boolean; forget: (id: string) => void; readonly size: number }
type Lookup<Row> = (id: string) => Promise<Row | null>
type Known<Row> = { record: Row; read_at: number; ask_at: number }

/**
 * Caches rows of D1 by which requests are checked, such as keys, per isolate for 30 s, or 10
 * minutes while D1 is unavailable. Lookups are not shared: a request must not wait for another
 * one's I/O.
 */
export function createKeyCache<Row>(lookup: Lookup<Row>, now: () => number): KeyCache<Row> {
  const known = new Map<string, Known<Row>>()
  const absent = new Map<string, number>()

  function forget(id: string): void {
    known.delete(id)
    absent.delete(id)
  }

  function remember(id: string, record: Row | null): void {
    forget(id)
    if (record) known.set(id, { record, read_at: now(), ask_at: now() + FRESH_MS })
    else absent.set(id, now())
    if (known.size + absent.size > MOST_ENTRIES) evict(absent.size > 0 ? absent : known)
  }

  async function find(id: string): Promise<Row | null> {
    const entry = known.get(id)
    // A time that was read before the clock was set back says nothing.
    const within = (since: number, until: number) => since <= now() && now() < until
    if (entry && within(entry.read_at, entry.ask_at)) return entry.record
    const missed_at = absent.get(id)
    if (missed_at !== undefined && within(missed_at, missed_at + ABSENT_MS)) return null
    const usable = entry !== undefined && within(entry.read_at, entry.read_at + STALE_MS)
    try {
      const timeout_ms = usable ? PATIENCE_MS.stale : PATIENCE_MS.absent
      const record = await withDeadline(() => lookup(id), { timeout_ms, what: 'the lookup of a key' })
      remember(id, record)
      return record
    } catch (error) {
      if (!usable) throw error
      entry.ask_at = Math.min(now() + backoff(pauses.read), entry.read_at + STALE_MS)
      return entry.record
    }
  }

  return {
    find,
    knows: (id) => known.has(id),
    forget,
    get size() {
      return known.size + absent.size
    },
  }
}

/** Evicts the oldest entry. Unknown ids go first: guesses must not evict keys in use. */
function evict(entries: Map<string, unknown>): void {
  const [oldest] = entries.keys()
  if (oldest !== undefined) entries.delete(oldest)
}
