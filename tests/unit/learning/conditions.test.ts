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
  HAS_SOURCE,
  numberKey,
  pathCode,
  pathKey,
  valueAt,
} from '../../../src/features/learning/reflexes/facts/condition.ts'
import { matrixOf } from '../../../src/features/learning/reflexes/facts/matrix.ts'
import { isReading, readingCode, READINGS, readingSources } from '../../../src/features/learning/reflexes/facts/readings.ts'
import { REPEATS_SOURCE } from '../../../src/features/learning/reflexes/facts/repeats.ts'
import { WORDS_SOURCE } from '../../../src/features/learning/reflexes/facts/text.ts'
import { assertProperty } from '../../support/property.ts'
import { episode } from './histories.ts'

const HELPERS = `${DIFFERENCE_SOURCE}
${WORDS_SOURCE}
${REPEATS_SOURCE}
${HAS_SOURCE}
${READINGS.flatMap((name) => readingSources(readingCode([name, 'a', 'b'], () => '')))
  .filter((one, at, all) => all.indexOf(one) === at)
  .join('\n')}
const types = \` ^ \${context.recent_events.map((event) => event.type).join(' ')} \``

/** Learned code that says whether a condition holds, and whether it does not. */
function asked(condition: Condition): (saw: Saw) => unknown {
  const texts = new Map('path' in condition ? [[pathKey(condition.path), 'text']] : [])
  const text = condition.is === 'says' || condition.is === 'begins' ? `wordsOf(${pathCode(condition.path)}).join(' ')` : "''"
  const both = [true, false].map((holds) => conditionCode({ condition, holds }, texts)).join(', ')
  // oxlint-disable-next-line typescript/no-implied-eval -- as the sandbox runs it
  return new Function('context', `${HELPERS}\nconst text = \` \${${text}} \`\nreturn [${both}]`) as (saw: Saw) => unknown
}

/** Code takes an object, or the length of a text, at the place of a number as it can. */
const isNumeric = (saw: Saw, condition: Condition): boolean => {
  if (condition.is !== 'at_least' || condition.minus !== undefined || isReading(condition.path)) return true
  const place = valueAt(saw, condition.path)
  return (
    typeof (place ?? 0) === 'number' &&
    !(condition.path.at(-1) === 'length' && typeof valueAt(saw, condition.path.slice(0, -1)) === 'string')
  )
}

const number = fc.oneof(
  fc.integer({ min: -3, max: 3 }),
  fc.integer({ min: -40, max: 40 }).map((tenths) => tenths / 10),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom(1e308, -1e308, 1e-12, -0, 2 ** 53, 0.1 + 0.2),
)
const date = fc
  .date({ min: new Date('1900-01-01T00:00:00Z'), max: new Date('2200-01-01T00:00:00Z'), noInvalidDate: true })
  .map((at) => at.toISOString())
const amount = fc.oneof(
  fc.constantFrom('12.50', '$3', '-4.5 EUR', '30 %', '007', '1,000', '+7,5 °C', 'USD 4', '2 hours', '2,327.56 EUR', '1.234,5 €'),
  number.map(String),
)
const dated = fc.oneof(
  date,
  date.map((text) => text.slice(0, 10)),
  fc.constantFrom('2026-02-30T10:00+05:30', '2026-13-01'),
)
const text = fc.oneof(
  fc.constantFrom('from 10.0.0.1 failed', 'Paid 12.50 of it', "it's `late`"),
  amount,
  dated,
  fc.string({ maxLength: 12 }),
)
const value = fc.oneof({ weight: 3, arbitrary: number }, text, fc.boolean(), fc.constant(null))
const item = fc.oneof(number, text)
const name = fc.constantFrom('a', 'b', 'c', 'a b', "it's")
const list = fc.array(fc.oneof(item, fc.dictionary(name, value, { maxKeys: 3 }), fc.array(item, { maxLength: 2 })), { maxLength: 3 })
const fieldsOf = (inner: fc.Arbitrary<unknown>): fc.Arbitrary<JsonFields> =>
  fc
    .dictionary(name, fc.oneof({ weight: 3, arbitrary: inner }, list), { maxKeys: 5 })
    .map((fields) => JSON.parse(JSON.stringify(fields)) as JsonFields)
const event = fieldsOf(fc.oneof({ weight: 3, arbitrary: value }, fieldsOf(value)))
const histories = fc.array(fc.tuple(event, event), { minLength: 2, maxLength: 60 }).map((all) =>
  all
    .map(([fields, scratch], index): Episode => {
      const one = episode(index, { type: index % 3 === 0 ? 'x' : 'y', ...fields }, [])
      return { ...one, saw: { ...one.saw, scratch } }
    })
    .map((one, index, before): Episode => {
      const recent_events = before.slice(Math.max(0, index - 5), index + 1).map(({ saw }) => saw.event)
      return { ...one, saw: { ...one.saw, recent_events } }
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
