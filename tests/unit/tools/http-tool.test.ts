import { expect, test } from 'vitest'
import { z } from 'zod'
import { asSchema } from 'ai'
import type { JsonFields } from '../../../src/base/json.ts'
import { httpToolSetting } from '../../../src/contract/settings/outside-tools.ts'
import { httpToolOf } from '../../../src/tools/http-tool.ts'
import { fillUrl } from '../../../src/tools/slot-text.ts'

function toolOf(properties: JsonFields, more: JsonFields = {}) {
  const input = { type: 'object', properties, ...more }
  const setting = { name: 'http.a', description: 'a', method: 'POST', url: 'https://a.example/', input }
  const schema = { additionalProperties: false, ...input }
  return { tool: httpToolOf(httpToolSetting.parse(setting), { allowed_hosts: [] }), zod: z.fromJSONSchema(schema as never) }
}
const alternatives = Array.from({ length: 400 }, (_, index) => ({ const: index }))

test('a list against 400 alternatives is judged within the work of one value', () => {
  const { tool } = toolOf({ list: { type: 'array', items: { anyOf: alternatives } } })
  expect(tool.input.safeParse({ list: Array(100).fill(399) }).success).toBe(true)
  const parsed = tool.input.safeParse({ list: Array(100_000).fill(399) })
  expect(parsed.error?.issues).toMatchObject([{ message: expect.stringContaining('takes too much work to check') }])
})

const line = { type: 'object', properties: { sku: { type: 'string' }, count: { type: 'integer', default: 1 } }, required: ['sku'] }
const small = { type: 'object', properties: { kind: { const: 's' }, size: { default: 1 } }, required: ['kind'] }
const large = { type: 'object', properties: { kind: { const: 'l' }, size: { default: 9 } }, required: ['kind'] }
const kinds = {
  b: { type: 'string' },
  a: { type: 'number', default: 7 },
  lines: { type: 'array', items: line },
  box: { anyOf: [small, large] },
}

test.each<JsonFields>([
  { b: 'x' },
  { a: 1, b: 'x' },
  { lines: [{ count: 2, sku: 'x' }, { sku: 'y' }], b: 'x' },
  { box: { kind: 'l' } },
  { box: { size: 2, kind: 's', more: 1 } },
  { b: 1 },
  { other: 1 },
  { lines: [{}] },
])('the input %j has the defaults and the order of the schema', (value) => {
  const { tool, zod } = toolOf(kinds)
  const [own, expected] = [tool.input.safeParse(value), zod.safeParse(value)]
  expect(own.success).toBe(expected.success)
  // The text, since the arguments of a call are hashed as text.
  expect(JSON.stringify(own.data)).toBe(JSON.stringify(expected.data))
  expect(own.error?.issues.map(({ path }) => path[0])).toEqual(expected.error?.issues.map(({ path }) => path[0] ?? 'other'))
})

test('one object at two places gets the defaults of each', () => {
  const { tool } = toolOf({ s: small, l: large }, { additionalProperties: true })
  const other = toolOf({ a: { properties: { x: { default: 1 } } }, b: { properties: { y: { default: 2 } } } }).tool
  const shared = {}
  expect(other.input.safeParse({ a: shared, b: shared }).data).toEqual({ a: { x: 1 }, b: { y: 2 } })
  expect(shared).toEqual({})
  expect(tool.input.safeParse({ s: { kind: 's' }, z: 1 }).data).toEqual({ s: { kind: 's', size: 1 }, z: 1 })
})

test('a model sees the schema, and its call is judged by it', async () => {
  const shown = asSchema(toolOf(kinds).tool.shown_input)
  expect(await shown.jsonSchema).toEqual({ additionalProperties: false, type: 'object', properties: kinds })
  expect(await shown.validate?.({ b: 'x' })).toEqual({ success: true, value: { b: 'x', a: 7 } })
  expect(await shown.validate?.({ b: 1 })).toMatchObject({ success: false })
})

test.each<[string, JsonFields, string]>([
  ['/find?tag={{tags}}&limit={{limit?}}', { tags: ['a b', 'c&d', 7] }, '/find?tag=a%20b&tag=c%26d&tag=7'],
  ['/find?tag={{tags}}&limit={{limit?}}#top', { tags: [], limit: 5 }, '/find?limit=5#top'],
  ['/find?tag={{tags?}}', {}, '/find'],
  ['/users/{{user?}}', { user: 'a?b' }, '/users/a%3Fb'],
  ['/users/{{user?}}?q={{q}}', { user: 'a', q: '..' }, '/users/a?q=..'],
  ['/find?q=tag:{{tag}}&fixed', { tag: ['a'] }, '/find?q=tag:%5B%22a%22%5D&fixed'],
])('the address %s with %j is %s', (path, input, filled) => {
  expect(fillUrl(`https://a.example${path}`, input)).toBe(`https://a.example${filled}`)
})
