import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Saw } from '../../../src/features/learning/episode.ts'
import { leavesOf } from '../../../src/features/learning/reflexes/facts/facts.ts'
import { READINGS, readingCode, readingSources } from '../../../src/features/learning/reflexes/facts/readings.ts'
import {
  candidatesOf,
  computedFields,
  extract,
  type Extractor,
  ROUNDED_SOURCE,
  TIDIED_SOURCE,
} from '../../../src/features/learning/reflexes/slots.ts'
import { extractorCode } from '../../../src/features/learning/reflexes/act-code.ts'
import { PART_SOURCE } from '../../../src/features/learning/reflexes/write.ts'
import { assertProperty } from '../../support/property.ts'
import { sawWith } from './scorer/saws.ts'

const HELPERS = [
  PART_SOURCE,
  ROUNDED_SOURCE,
  TIDIED_SOURCE,
  ...new Set(READINGS.flatMap((name) => readingSources(readingCode([name, 'a', 'b'], () => '')))),
].join('\n')

/** The values that learned code gives. */
function inCode(extractors: readonly Extractor[]): (saw: Saw) => unknown[] {
  const code = `${HELPERS}\nreturn [${extractors.map(extractorCode).join(',\n')}]`
  // oxlint-disable-next-line typescript/no-implied-eval -- as the sandbox runs it
  const read = new Function('context', code) as (context: Saw) => unknown[]
  return (saw) => read(saw).map((one, index) => (extractors[index]?.as === 'number' && one !== undefined ? Number(one) : one))
}

const numbers = fc.oneof(
  fc.integer({ min: -50, max: 50 }),
  fc.integer({ min: -9000, max: 9000 }).map((cents) => cents / 100),
  fc.constantFrom(1e308, -1e308, 1e21, 1e-12, -0, 2 ** 53, 0.1 + 0.2),
)
const events = fc.record({
  price: fc.oneof(
    numbers,
    numbers.map((value) => `${value} EUR`),
  ),
  count: numbers,
  lines: fc.array(fc.record({ count: fc.oneof(numbers, fc.constant('1')) }), { maxLength: 3 }),
  due: fc.constantFrom('2026-01-31', '2026-03-01T10:00+05:30', 'soon'),
})
const contexts = events.map(sawWith)

test('learned code finds each argument as the learner does, in any event', () => {
  assertProperty(
    'learning/slots',
    fc.property(fc.array(contexts, { minLength: 3, maxLength: 8 }), fc.array(numbers, { minLength: 8, maxLength: 8 }), (saws, values) => {
      const found = saws.flatMap((saw, index) => [
        ...leavesOf(saw).leaves.flatMap(({ value }) => {
          if (typeof value !== 'string' && typeof value !== 'number') return []
          const parts =
            typeof value === 'number' ? [value, String(value), value.toFixed(2)] : [value, value.trim(), value.split(' ')[0] ?? '']
          return parts.flatMap((part) => candidatesOf({ saw, value: part }))
        }),
        ...computedFields(
          saws.map((one, place) => ({ saw: one, value: values[(index + place) % values.length] ?? 0 })),
          0,
        ),
      ])
      const distinct = [...new Map(found.map((extractor) => [JSON.stringify(extractor), extractor])).values()]
      const read = inCode(distinct)
      for (const saw of saws) expect(read(saw)).toEqual(distinct.map((extractor) => extract({ slot: [extractor] }, saw)))
    }),
  )
})
