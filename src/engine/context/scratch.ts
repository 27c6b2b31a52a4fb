import type { Act } from '../../contract/reflex.ts'

const LONGEST_ACT = 1000

type Scratch = Readonly<Record<string, unknown>>

/** The keys that differ, with their new values as JSON: undefined for a key that was removed. */
export function scratchChanges(before: Scratch, after: Scratch): [string, string | undefined][] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key): [string, string | undefined][] => {
    const value = JSON.stringify(after[key])
    return value === JSON.stringify(before[key]) ? [] : [[key, value]]
  })
}

/** The log entry of a turn already holds a long value, in its scratch. */
export const scratchActs = (changes: readonly [string, string | undefined][]): Act[] =>
  changes
    .filter(([, value]) => (value?.length ?? 0) <= LONGEST_ACT)
    .map(([key, value]) => ({ act: 'set_scratch', key, value: value === undefined ? null : (JSON.parse(value) as unknown) }))
