import { Problem } from '../../contract/problem.ts'

const listed = (missing: ReadonlySet<string>): string[] => [...missing].toSorted()

/** As an answer has them, which says nothing if all databases have answered. */
export const namesOf = (missing: ReadonlySet<string>): { missing?: string[] } => (missing.size === 0 ? {} : { missing: listed(missing) })

/** Refuses what only an answer of all databases would say. */
export function demandWhole(missing: ReadonlySet<string>): void {
  if (missing.size === 0) return
  throw new Problem({
    status: 503,
    type: 'urn:reflex:problem:unavailable',
    title: 'Temporarily unavailable',
    detail: `${listed(missing).join(', ')} did not answer, and may have what is asked for. The other databases do not have it.`,
    headers: { 'Retry-After': '5' },
  })
}
