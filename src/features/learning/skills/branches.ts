import type { Json } from '../../../base/json.ts'
import { isConstant, sharedFields } from './sources.ts'
import type { TracedAct, Occurrence } from './trace.ts'

/** The value that an earlier output has exactly in the turns that made a call, or in the others. */
export type Branch = { step: number; path: string; value: string | boolean; is: boolean }

const PLAIN = /^(?:\.[A-Za-z_]\w*)+$/
const LONGEST_TEXT = 100

/**
 * The field by which the turns that went on differ from those that did not: the latest output
 * first. Null if no field has one value in all of one kind and in none of the other.
 */
export function branchOf(calls: readonly (readonly (TracedAct | null)[])[], went_on: readonly boolean[]): Branch | null {
  const steps = calls[0]?.length ?? 0
  for (let step = steps - 1; step >= 0; step -= 1) {
    const outputs = calls.map((own) => own[step]?.output)
    for (const { place, values } of sharedFields(outputs, '')) {
      if (!PLAIN.test(place)) continue
      const [on, off] = [true, false].map((wanted) => values.filter((_, index) => went_on[index] === wanted)) as [Json[], Json[]]
      const is = tells(on, off)
      if (is !== null) return { step, path: place.slice(1), value: is, is: true }
      const is_not = tells(off, on)
      if (is_not !== null) return { step, path: place.slice(1), value: is_not, is: false }
    }
  }
  return null
}

/** The one value of these that none of the others has. */
function tells(these: readonly Json[], others: readonly Json[]): string | boolean | null {
  const [value = null] = these
  const isPlain = typeof value === 'boolean' || (typeof value === 'string' && value.length <= LONGEST_TEXT)
  return isPlain && isConstant(these) && !others.includes(value) ? value : null
}

export const guardOf = ({ path, value, is }: Branch, step: string): string =>
  `work.steps.${step}.${path} ${is ? '==' : '!='} ${JSON.stringify(value)}`

export const madeCalls = ({ calls }: Pick<Occurrence, 'calls'>): TracedAct[] => calls.filter((call) => call !== null)
