import { expect, test } from 'vitest'
import type { Json, JsonFields } from '../../../../src/base/json.ts'
import { argumentErrors } from '../../../../src/skills/ci/arguments.ts'
import { parseManifest } from '../../../../src/skills/manifest/manifest.ts'

const schema = {
  type: 'object',
  properties: {
    order: { type: 'string' },
    amount: { type: 'number' },
    count: { type: 'integer' },
    tags: { type: 'array', items: { type: 'string' } },
    to: { type: 'object', properties: { iban: { type: 'string' } }, required: ['iban'], additionalProperties: false },
    note: { type: ['string', 'null'] },
    any: {},
  },
  required: ['order', 'amount'],
}
const inputs = [
  ...['string', 'url', 'number', 'integer', 'boolean', 'list', 'object'].map((type) => ({ name: `a_${type}`, type, required: true })),
  { name: 'cc', type: 'string' },
]

function errors(args: JsonFields, of: JsonFields = schema): string[] {
  const parsed = parseManifest({
    id: 'refund',
    version: '1.0.0',
    owner: 'a',
    signature: { inputs },
    plan: { budget: { max_cost_usd: 1, max_latency_ms: 1 }, steps: [{ tool: 'http.refund', args }] },
  })
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors))
  const found = argumentErrors(parsed.manifest, new Map([['http.refund', { schema: of, scope: 'support/a' }]]))
  return found.map(({ path, message }) => `${path}: ${message}`)
}
const whole = (field: string, value: Json) => errors({ order: '{{a_string}}', amount: '{{a_number}}', [field]: value })

test.each<[string, Json]>([
  ['order', '{{a_url}}'],
  ['order', 'text {{a_number}}'],
  ['order', '{{ctx.anything}}'],
  ['order', '{{a_object.name}}'],
  ['amount', '{{a_integer}}'],
  ['amount', 12.5],
  ['count', '{{a_number}}'],
  ['tags', '{{a_list}}'],
  ['tags', ['late', '{{a_string}}']],
  ['to', { iban: '{{a_string}}' }],
  ['to', '{{a_object}}'],
  ['note', '{{cc?}}'],
  ['note', null],
  ['any', '{{a_list}}'],
])('a tool can be given the argument %s = %j', (field, value) => {
  expect(whole(field, value)).toEqual([])
})

test.each<[string, Json, string]>([
  [
    'order',
    '{{a_number}}',
    'plan.steps.0.args.order: is the input a_number (number), where the tool takes string (http.refund of scope support/a)',
  ],
  ['amount', '{{a_string}}', 'is the input a_string (string), where the tool takes number'],
  ['amount', 'about {{a_number}}', 'is a text, where the tool takes number'],
  ['amount', '12', 'expected number, received string'],
  ['count', '{{a_boolean}}', 'is the input a_boolean (boolean), where the tool takes integer'],
  ['tags', ['{{a_list}}'], 'plan.steps.0.args.tags.0: is the input a_list (list), where the tool takes string'],
  ['tags', '{{a_object}}', 'is the input a_object (object), where the tool takes array'],
  ['to', { iban: '{{a_string}}', bic: '{{cc?}}' }, 'plan.steps.0.args.to.bic: is no field of the tool, which takes iban'],
  ['to', { name: '{{a_string}}' }, 'plan.steps.0.args.to: has no iban, which the tool requires'],
  ['order', '{{cc?}}', 'plan.steps.0.args.order: may be absent, and the tool requires it'],
  ['more', '{{a_list}}', 'plan.steps.0.args.more: is no field of the tool, which takes order, amount, count'],
])('and not %s = %j', (field, value, expected) => {
  expect(whole(field, value)).toContainEqual(expect.stringContaining(expected))
})

test('literal arguments of one call are compared with its schema within the work of one value', () => {
  const many = Array.from({ length: 400 }, (_, index) => ({ const: index }))
  const listed = { type: 'object', properties: { order: {}, amount: {}, list: { type: 'array', items: { anyOf: many } } } }
  // The placeholder makes each item a literal of its own.
  const list = ['{{a_number}}', ...Array<number>(300).fill(399)]
  expect(errors({ list: list.slice(0, 100) }, listed)).toEqual([])
  expect(errors({ list }, listed)).toContainEqual(expect.stringContaining('takes too much work to check'))
})
