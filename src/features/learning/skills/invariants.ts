import type { Json } from '../../../base/json.ts'
import { blackboardSources, fieldsOf, isConstant, keyOf, type ValueSource } from './sources.ts'
import type { Trace, Occurrence } from './trace.ts'

const MOST_INVARIANTS = 16
const MOST_COMPARED = 50
/** Names that an expression can hold without quotes. */
const PLAIN_PATH = /^(?:ctx|env|policy)(?:\.[A-Za-z_]\w*)+$/
const LONGEST_TEXT = 200

/**
 * Expressions that held on the blackboard in all occurrences: a field had one value, which it does
 * not have in some other turn, or two fields that vary were equal.
 */
export function invariantsOf(occurrences: readonly Occurrence[], others: readonly Trace[]): string[] {
  const sources = blackboardSources(occurrences).filter(({ place }) => PLAIN_PATH.test(place))
  const elsewhere = others.map(({ blackboard }) => fieldsOf(blackboard))
  const constant = sources.filter(({ values }) => isConstant(values))
  const varying = sources.filter(({ values }) => !isConstant(values)).slice(0, MOST_COMPARED)
  const isTelling = ({ place, values: [value = null] }: ValueSource): boolean =>
    isShort(value) && elsewhere.some((fields) => fields.has(place) && fields.get(place) !== value)
  return [
    ...constant.filter(isTelling).map(({ place, values: [value = null] }) => `${place} == ${JSON.stringify(value)}`),
    ...varying.flatMap((one, index) =>
      varying
        .slice(index + 1)
        .filter((other) => keyOf(one.values) === keyOf(other.values))
        .map((other) => `${one.place} == ${other.place}`),
    ),
  ].slice(0, MOST_INVARIANTS)
}

/** Numbers have several types in expressions, so that they are not compared with literals. */
const isShort = (value: Json): boolean => typeof value === 'boolean' || (typeof value === 'string' && value.length <= LONGEST_TEXT)
