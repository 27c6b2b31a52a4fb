import { Problem } from '../../contract/problem.ts'
import { PackDamaged } from './format.ts'

/** A database beside the store did not answer. Nothing is wrong with what it was asked about. */
export class DatabaseAway extends Error {
  override name = 'DatabaseAway'
}

/** Databases that did not answer, and packs that cannot be read: an answer lacks their events. */
export type Gaps = { missing: Set<string>; damaged: Set<string> }
export const noGaps = (): Gaps => ({ missing: new Set(), damaged: new Set() })

const listed = (names: ReadonlySet<string>): string[] => [...names].toSorted()

/**
 * As an answer has them, which says nothing if it lacks nothing. The id of a pack has the time of
 * an event, which a key that covers only some scopes may not see: it learns the database.
 */
export function namesOf(
  { missing, damaged }: { [Name in keyof Gaps]: ReadonlySet<string> },
  patterns: readonly string[],
): { missing?: string[]; damaged?: string[] } {
  const shown = patterns.includes('*') ? damaged : new Set(Array.from(damaged, (name) => name.replace(/ .*$/, '')))
  return { ...(missing.size > 0 && { missing: listed(missing) }), ...(shown.size > 0 && { damaged: listed(shown) }) }
}

/** Refuses to say that no event has an id, if a pack that may have it cannot be read. */
export function demandRead(damaged: ReadonlySet<string>, patterns: readonly string[]): void {
  const [name] = namesOf({ missing: new Set(), damaged }, patterns).damaged ?? []
  if (name === undefined) return
  const [database, id] = name.split(' ')
  const pack = id === undefined ? 'A pack' : `The pack ${id}`
  const where = `it is in ${database}, and may have what is asked for`
  throw new PackDamaged(`${pack} of the event log cannot be read: ${where}. The events in other packs are not affected.`)
}

/** Refuses what only an answer of all databases would say. */
export function demandWhole({ missing, damaged }: Partial<Gaps>): void {
  const refusal = { status: 503, type: 'urn:reflex:problem:unavailable', title: 'Temporarily unavailable' } as const
  if (damaged && damaged.size > 0)
    throw new Problem({ ...refusal, detail: `Packs of events cannot be read: ${listed(damaged).join(', ')}.` })
  if (!missing || missing.size === 0) return
  throw new Problem({
    ...refusal,
    detail: `${listed(missing).join(', ')} did not answer, and may have what is asked for. The other databases do not have it.`,
    headers: { 'Retry-After': '5' },
  })
}
