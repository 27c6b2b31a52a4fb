import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { judgeOf } from '../../../src/base/json-schema.ts'

const paths = (schema: object, value: unknown) => judgeOf(schema)(value).map(({ path }) => path.join('.'))

const order = {
  type: 'object',
  properties: {
    id: { type: 'string', minLength: 2, maxLength: 5 },
    at: { type: 'string', format: 'date-time' },
    total: { type: 'number', minimum: 0, exclusiveMaximum: 100, multipleOf: 0.5 },
    count: { type: 'integer' },
    kind: { enum: ['a', 'b'] },
    fixed: { const: 3 },
    maybe: { type: ['string', 'null'] },
    lines: {
      type: 'array',
      minItems: 1,
      maxItems: 3,
      items: { type: 'object', properties: { sku: { type: 'string' } }, required: ['sku'] },
    },
    pair: { type: 'array', prefixItems: [{ type: 'string' }, { type: 'number' }] },
    either: { anyOf: [{ type: 'string' }, { type: 'object', properties: { ref: { type: 'string' } }, required: ['ref'] }] },
    just: {
      oneOf: [
        { type: 'number', minimum: 5 },
        { type: 'number', maximum: 9 },
      ],
    },
    strict: { type: 'object', properties: { a: { type: 'boolean' } }, additionalProperties: false },
    map: { type: 'object', additionalProperties: { type: 'number' } },
  },
  required: ['id'],
}

describe('an event of a declared type', () => {
  test.each<[Record<string, unknown>, string[]]>([
    [{ id: 'ab' }, []],
    [{ id: 'ab', unknown: 1 }, []],
    [{}, ['id']],
    [{ id: 'a' }, ['id']],
    [{ id: 7, total: -1 }, ['id', 'total']],
    [{ id: 'ab', at: '2026-01-01T00:00:00Z', total: 99.5, count: 3, kind: 'a', fixed: 3, maybe: null }, []],
    [{ id: 'ab', at: 'today', total: 100, count: 3.5, kind: 'c', fixed: 4, maybe: 1 }, ['at', 'total', 'count', 'kind', 'fixed', 'maybe']],
    [{ id: 'ab', kind: 'b', lines: [{ sku: 'x' }], pair: ['x', 1] }, []],
    [{ id: 'ab', lines: [{ sku: 'x' }, {}, { sku: 1 }] }, ['lines.1.sku', 'lines.2.sku']],
    [{ id: 'ab', lines: [] }, ['lines']],
    [{ id: 'ab', pair: [1, 'x'] }, ['pair.0', 'pair.1']],
    [{ id: 'ab', either: 'x', just: 3 }, []],
    [{ id: 'ab', either: { ref: 'x' }, just: 10 }, []],
    [{ id: 'ab', either: {}, just: 7 }, ['either', 'just']],
    [{ id: 'ab', strict: { a: true }, map: { x: 1 } }, []],
    [{ id: 'ab', strict: { a: true, b: 1 }, map: { x: 'y' } }, ['strict.b', 'map.x']],
  ])('%j has its flaws at %j', (value, expected) => {
    expect(paths(order, value).toSorted()).toEqual(expected.toSorted())
    expect(z.fromJSONSchema(order as never).safeParse(value).success).toBe(expected.length === 0)
  })

  test('has its first flaws in the answer only', () => {
    const schema = { type: 'object', properties: { a: { type: 'array', items: { type: 'string' } } } }
    expect(paths(schema, { a: Array(5000).fill(1) })).toHaveLength(10)
  })

  test('that takes too much work to check is refused without checking the rest', () => {
    const alternatives = Array.from({ length: 1500 }, (_, index) => ({ const: index }))
    const schema = { type: 'object', properties: { a: { type: 'array', items: { anyOf: alternatives } } } }
    expect(paths(schema, { a: Array(10).fill(1499) })).toEqual([])
    let looked = 0
    const items = new Proxy(Array(12_000).fill(1499), { get: (list, name) => ((looked += 1), Reflect.get(list, name)) })
    expect(judgeOf(schema)({ a: items })).toEqual([{ path: [], message: expect.stringContaining('takes too much work to check') }])
    expect(looked).toBeLessThan(200)
  })

  test('is compared with objects that its schema names by their content', () => {
    const schema = { type: 'object', properties: { kind: { enum: [{ deep: [1] }] } } }
    expect(paths(schema, { kind: { deep: [1] } })).toEqual([])
    expect(paths(schema, { kind: { deep: [2] } })).toEqual(['kind'])
  })

  test('with a long list of simple items fits', () => {
    const schema = { type: 'object', properties: { a: { type: 'array', items: { type: 'number', minimum: 0 } } } }
    expect(paths(schema, { a: Array(20_000).fill(1) })).toEqual([])
  })
})
