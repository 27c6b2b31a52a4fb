/** Databases and packs whose events a page lacks, and days that it has from the archive. */
export type PageGaps = { missing?: string[]; damaged?: string[]; archived?: string[] }
const gapWords = {
  missing: 'did not answer: what only they have is missing here.',
  damaged: 'cannot be read: the events in these packs are missing here.',
  archived: 'has left D1: it was read from the archive.',
}
export const GAPS = Object.keys(gapWords) as (keyof PageGaps)[]

/** Lines for people about where the events of a page are, unless all of them are in D1. */
export const gapsOf = (page: PageGaps): string[] =>
  GAPS.flatMap((name) => ((page[name] ?? []).length > 0 ? [`${page[name]?.join(', ')} ${gapWords[name]}`] : []))

type Window = { days: number | null; packs?: { kept_days: number | null; leave_in_days?: number | null } }

/** Says that D1 will forget events before they are due, as it has no archive; or null. */
export function windowWarning({ days, packs }: Window, archive: object | null | undefined): string | null {
  if (archive || !packs || packs.kept_days === null || days === null || packs.kept_days >= days) return null
  const from = packs.leave_in_days ? `in ${packs.leave_in_days} days` : 'now'
  return `REFLEX_EVENTS_BYTES holds ${packs.kept_days} days of events at this rate, not ${days}: the oldest are forgotten, beginning ${from}`
}
