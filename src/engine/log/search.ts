import type { LogFilter } from '../../contract/scope-api.ts'

/** Quotes within strings are escaped, so that the first match is the entry's own field. */
const fieldOf = (name: string, text: string): string | undefined => new RegExp(`"${name}":"([^"]*)"`).exec(text)?.[1]
const idsOf = (text: string): string[] => JSON.parse(/"event_ids":(\[(?:"(?:[^"\\]|\\.)*",?)*\])/.exec(text)?.[1] ?? '[]') as string[]

/** Tells entries, given as JSON text in the order of the log, that the filter names. */
export function entryFilter({ trace_id, kinds, related }: LogFilter): (text: string) => boolean {
  const own = new Set(related)
  const isOfTrace = (text: string): boolean => {
    if (fieldOf('trace_id', text) !== trace_id) return own.size > 0 && idsOf(text).some((id) => own.has(id))
    if (related && fieldOf('kind', text) === 'event-accepted') for (const id of idsOf(text)) own.add(id)
    return true
  }
  return (text) => (kinds === undefined || kinds.includes(fieldOf('kind', text) ?? '')) && (trace_id === undefined || isOfTrace(text))
}
