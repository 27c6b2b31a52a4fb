import { Problem } from '../../contract/problem.ts'

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
export function namesOf({ missing, damaged }: Gaps, patterns: readonly string[]): { missing?: string[]; damaged?: string[] } {
  const shown = patterns.includes('*') ? damaged : new Set(Array.from(damaged, (name) => name.replace(/ .*$/, '')))
  return { ...(missing.size > 0 && { missing: listed(missing) }), ...(shown.size > 0 && { damaged: listed(shown) }) }
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
