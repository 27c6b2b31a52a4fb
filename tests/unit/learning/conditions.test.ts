import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { atOnce } from '../../../src/base/steps.ts'
import type { JsonFields } from '../../../src/base/json.ts'
import type { Episode, Saw } from '../../../src/features/learning/episode.ts'
import { hasBit } from '../../../src/features/learning/reflexes/facts/bits.ts'
import {
  type Condition,
  conditionCode,
  DIFFERENCE_SOURCE,
  numberKey,
  pathCode,
  pathKey,
  valueAt,
} from '../../../src/features/learning/reflexes/facts/condition.ts'
import { matrixOf } from '../../../src/features/learning/reflexes/facts/matrix.ts'
import { REPEATS_SOURCE } from '../../../src/features/learning/reflexes/facts/repeats.ts'
import { WORDS_SOURCE } from '../../../src/features/learning/reflexes/facts/text.ts'
import { assertProperty } from '../../support/property.ts'
import { episode } from './histories.ts'

const HELPERS = `${DIFFERENCE_SOURCE}
${WORDS_SOURCE}
${REPEATS_SOURCE}
const has = (list, item) => Array.isArray(list) && list.includes(item)
const types = \` ^ \${context.recent_events.map((event) => event.type).join(' ')} \``

/** Learned code that says whether a condition holds, and whether it does not. */
function asked(condition: Condition): (saw: Saw) => unknown {
  const texts = new Map('path' in condition ? [[pathKey(condition.path), 'text']] : [])
  const text = condition.is === 'says' || condition.is === 'begins' ? `wordsOf(${pathCode(condition.path)}).join(' ')` : "''"
  const both = [true, false].map((holds) => conditionCode({ condition, holds }, texts)).join(', ')
  // oxlint-disable-next-line typescript/no-implied-eval -- as the sandbox runs it
  return new Function('context', `${HELPERS}\nconst text = \` \${${text}} \`\nreturn [${both}]`) as (saw: Saw) => unknown
}

/** A number, or none. What else is at the place of one number, code takes as it can. */
const isNumeric = (saw: Saw, condition: Condition): boolean =>
  condition.is !== 'at_least' || condition.minus !== undefined || typeof (valueAt(saw, condition.path) ?? 0) === 'number'

const number = fc.oneof(
  fc.integer({ min: -3, max: 3 }),
  fc.integer({ min: -40, max: 40 }).map((tenths) => tenths / 10),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom(1e308, -1e308, 1e-12, -0, 2 ** 53, 0.1 + 0.2),
)
const text = fc.oneof(fc.constantFrom('from 10.0.0.1 failed', 'Paid 12.50 of it', "it's `late`"), fc.string({ maxLength: 12 }))
const value = fc.oneof({ weight: 3, arbitrary: number }, text, fc.boolean(), fc.constant(null))
const item = fc.oneof(number, text)
const name = fc.constantFrom('a', 'b', 'c', 'a b', "it's")
/** A field is a list in all events, or in none: code asks a text for its length, too. */
const fieldsOf = (inner: fc.Arbitrary<unknown>): fc.Arbitrary<JsonFields> =>
  fc
    .record({ fields: fc.dictionary(name, inner, { maxKeys: 5 }), list: fc.option(fc.array(item, { maxLength: 3 }), { nil: undefined }) })
    .map(({ fields, list }) => JSON.parse(JSON.stringify({ ...fields, list })) as JsonFields)
const event = fieldsOf(fc.oneof({ weight: 3, arbitrary: value }, fieldsOf(value)))
const histories = fc.array(fc.tuple(event, event), { minLength: 2, maxLength: 60 }).map((all) =>
  all.map(([fields, scratch], index): Episode => {
    const one = episode(index, { type: index % 3 === 0 ? 'x' : 'y', ...fields }, [])
    return { ...one, saw: { ...one.saw, scratch } }
  }),
)

test('learned code answers each condition as the learner does, of any events', () => {
  assertProperty(
    'learning/conditions',
    fc.property(histories, (episodes) => {
      const { features, numbers } = atOnce(matrixOf(episodes))
      const expectAlike = (condition: Condition, holds: (index: number) => boolean): void => {
        const ask = asked(condition)
        const known = episodes.flatMap(({ saw }, index) => (isNumeric(saw, condition) ? [{ saw, index }] : []))
        const code = known.map(({ saw }) => ask(saw))
        expect([condition, code]).toEqual([condition, known.map(({ index }) => [holds(index), !holds(index)])])
      }
      for (const { condition, bits } of features) {
        expectAlike(condition, (index) => hasBit(bits, index))
        const own = condition.is === 'at_least' ? numbers.get(numberKey(condition)) : undefined
        // A rule takes any of its values as the threshold.
        for (const value of new Set(own))
          if (!Number.isNaN(value)) expectAlike({ ...condition, value } as Condition, (index) => (own?.[index] ?? 0) >= value)
      }
    }),
  )
})
