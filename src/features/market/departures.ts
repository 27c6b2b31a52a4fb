import { warn } from '../../base/warn.ts'
import type { Ledger } from './ledger/ledger.ts'
import { copiedAmong } from './store/ledger.ts'
import { storeOf } from '../../store/store.ts'
import type { MarketSource, Room } from './room.ts'

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
/** Transfers that are looked at in a transaction; twice as many may leave with their ends. */
const PAGE = 500
/** Portions of one alarm: then the outbox has its turn. */
const MOST_PORTIONS = 20
const MOST_NAMED = 10

type Acting = {
  ledger: Ledger
  /** Null: nothing leaves. */
  days: number | null
  now: () => number
  /** Runs a transaction. */
  act: <Made>(work: (now: number) => Made) => Made
  /** The rooms whose unfinished work keeps transfers. */
  rooms: () => readonly Pick<Room, 'inUse'>[]
  limit?: number
}

/**
 * Lets history leave that is older than the retention, in a pass a day: of each portion, D1 is
 * read to have each transfer as it is, and then one transaction deletes them here.
 */
export function departures({ ledger, days, now, act, rooms, limit = PAGE }: Acting): MarketSource {
  let is_due = false
  let looked_at = -Infinity
  const before = (): number => now() - (days ?? Infinity) * DAY_MS
  const isInUse = (ids: readonly string[]): Set<string> => new Set(rooms().flatMap((room) => room.inUse(ids)))
  return {
    get waiting() {
      if (days === null || is_due || now() < looked_at + HOUR_MS) return is_due
      looked_at = now()
      return (is_due = ledger.isDeparting(before(), now()))
    },
    async send(env) {
      for (let portion = 0; is_due && portion < MOST_PORTIONS; portion += 1) {
        const asked = { before: before(), limit }
        const found = ledger.departing({ ...asked, isInUse })
        const copied = await copiedAmong(storeOf(env), found.groups.flat())
        const [leaving, staying] = [true, false].map((leaves) =>
          found.groups.filter((group) => group.every(({ seq }) => copied.has(seq)) === leaves),
        )
        const seqs = (staying ?? []).flat().map(({ seq }) => seq)
        if (seqs.length > 0)
          warn({ message: 'transfers stay in the ledger: D1 has others in their place', seqs: seqs.slice(0, MOST_NAMED) })
        is_due = !act((at) => ledger.depart({ ...found, groups: leaving ?? [] }, { ...asked, now: at }))
      }
    },
  }
}
