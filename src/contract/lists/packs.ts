/** Databases and packs, by their names, whose events a page lacks. */
export type PageGaps = { missing?: string[]; damaged?: string[] }
const gapWords = {
  missing: 'did not answer: what only they have is missing here.',
  damaged: 'cannot be read: the events in these packs are missing here.',
}
export const GAPS = Object.keys(gapWords) as (keyof PageGaps)[]

/** A line for people about each kind of what a page lacks. */
export const gapsOf = (page: PageGaps): string[] =>
  GAPS.flatMap((name) => ((page[name] ?? []).length > 0 ? [`${page[name]?.join(', ')} ${gapWords[name]}`] : []))
