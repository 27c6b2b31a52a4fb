import { MEMORY_KEY } from '../../agent/conversation/memory.ts'
import type { Act } from '../../contract/reflex.ts'
import type { Settings } from '../../contract/settings/settings.ts'

const LONGEST_ACT = 1000

type Scratch = Readonly<Record<string, unknown>>
type ScratchChange = [key: string, value: string | undefined]

/** The keys that differ, with their new values as JSON: undefined for a key that was removed. */
export function scratchChanges(before: Scratch, after: Scratch): ScratchChange[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key): ScratchChange[] => {
    const value = JSON.stringify(after[key])
    return value === JSON.stringify(before[key]) ? [] : [[key, value]]
  })
}

/**
 * The log entry of a turn already holds a long value, in its scratch. The note by which an agent
 * remembers its turns changes with each: it is no act.
 */
export const scratchActs = (changes: readonly ScratchChange[], { memory }: Pick<Settings, 'memory'>): Act[] =>
  changes
    .filter(([key, value]) => (value?.length ?? 0) <= LONGEST_ACT && !(memory && key === MEMORY_KEY))
    .map(([key, value]) => ({ act: 'set_scratch', key, value: value === undefined ? null : (JSON.parse(value) as unknown) }))
