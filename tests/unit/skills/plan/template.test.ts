import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Json } from '../../../../src/base/json.ts'
import { placesIn, resolveTemplate } from '../../../../src/skills/plan/template.ts'
import { assertProperty } from '../../../support/property.ts'

const scope = {
  inputs: { app: 'pay', count: 3, list: [1, 2], none: null },
  ctx: { subscription: 'blue' },
  env: {},
  work: { items: [{ name: 'a' }], deep: { on: true } },
  policy: {},
}
const resolved = (value: Json) => resolveTemplate(value, scope)

describe('a template', () => {
  test.each<[string, Json, Json]>([
    ['places within a text', '--name {{app}} --count {{ count }}', '--name pay --count 3'],
    ['a place alone, which keeps its type', { a: '{{count}}', b: ['{{list}}'], c: '{{work.deep.on}}' }, { a: 3, b: [[1, 2]], c: true }],
    ['null, where it stands alone', '{{none}}', null],
    ['a path through a list', '{{work.items.0.name}}', 'a'],
    ['an input by its path', '{{inputs.app}} on {{ctx.subscription}}', 'pay on blue'],
    ['what is no string', [1, true, null], [1, true, null]],
    ['braces that are none', '{{app} {app}} { {app} }', '{{app} {app}} { {app} }'],
    ['names of fields, which are left alone', { '{{app}}': '{{app}}' }, { '{{app}}': 'pay' }],
  ])('fills %s', (_, value, expected) => {
    expect(resolved(value)).toEqual({ ok: true, value: expected })
  })

  test.each<[string, Json, string, string, RegExp]>([
    ['a missing input', { cmd: ['x {{tag}}'] }, 'missing', 'cmd.0', /\{\{tag\}\} has no value: there is no inputs.tag/],
    ['a missing path', '{{work.items.1.name}}', 'missing', '', /no work.items.1/],
    ['a prototype', '{{work.constructor}}', 'missing', '', /no work.constructor/],
    ['a prototype of an input', '{{constructor}}', 'missing', '', /no inputs.constructor/],
    ['__proto__', '{{work.__proto__.x}}', 'missing', '', /no work.__proto__/],
    ['the length of a list', '{{list.length}}', 'missing', '', /no inputs.list.length/],
    ['a method of a text', '{{app.length}}', 'missing', '', /no inputs.app.length/],
    ['a list within a text', 'x {{list}}', 'not_text', '', /is a list/],
    ['null within a text', 'x {{none}}', 'not_text', '', /is null/],
    ['an object within a text', 'x {{work.deep}}', 'not_text', '', /is an object/],
    ['no place', '{{a b}}', 'bad_place', '', /is not a placeholder/],
    ['an empty place', '{{}}', 'bad_place', '', /is not a placeholder/],
  ])('fails loudly for %s', (_, value, reason, at, detail) => {
    expect(resolved(value)).toMatchObject({ ok: false, reason, at, detail: expect.stringMatching(detail) })
  })

  test.each([
    ['a field', { to: '{{app}}', cc: '{{cc?}}' }, { to: 'pay' }],
    ['an item', { to: ['{{app}}', '{{cc?}}'] }, { to: ['pay'] }],
    ['a part of a text', { to: '{{app}}{{ cc? }}' }, { to: 'pay' }],
    ['a path', { id: '{{work.steps.open.id?}}' }, {}],
    ['nothing where it is there', { app: '{{app?}}', count: '{{count?}}', none: '{{none?}}' }, { app: 'pay', count: 3, none: null }],
  ])('leaves out %s that may be absent', (_, value, expected) => {
    expect(resolved(value)).toEqual({ ok: true, value: expected })
  })

  test('does not look again at what it has inserted', () => {
    const hostile = { ...scope, inputs: { a: '{{ctx.subscription}}', b: '$& $1 {{a}}' } }
    expect(resolveTemplate(['{{a}}', 'x {{a}} {{b}}'], hostile)).toEqual({
      ok: true,
      value: ['{{ctx.subscription}}', 'x {{ctx.subscription}} $& $1 {{a}}'],
    })
  })

  test('keeps any value as it is', () => {
    assertProperty(
      'skills/plan/template',
      fc.property(fc.jsonValue(), (value) => {
        const result = resolveTemplate(['{{x}}'], { ...scope, inputs: { x: value } })
        expect(JSON.stringify(result)).toBe(JSON.stringify({ ok: true, value: [value] }))
      }),
    )
  })

  test('hands out copies', () => {
    const inputs = { list: [1] }
    const result = resolveTemplate('{{list}}', { ...scope, inputs })
    expect(result.ok && result.value).not.toBe(inputs.list)
  })

  test('stops before it grows without end', () => {
    const inputs = { x: 'x'.repeat(100_000) }
    expect(resolveTemplate(Array(20).fill('a {{x}}'), { ...scope, inputs })).toMatchObject({ ok: false, reason: 'too_large' })
    expect(resolveTemplate(Array(20).fill('{{x}}'), { ...scope, inputs })).toMatchObject({ ok: false, reason: 'too_large' })
  })

  test('lists its places', () => {
    expect(placesIn({ cmd: 'a {{app}} {{work.x.y}}', more: ['{{a b}}'] })).toEqual([
      { place: 'app', path: ['inputs', 'app'], at: 'cmd' },
      { place: 'work.x.y', path: ['work', 'x', 'y'], at: 'cmd' },
      { place: 'a b', path: null, at: 'more.0' },
    ])
  })
})
