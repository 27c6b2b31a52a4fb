import { describe, expect, test } from 'vitest'
import type { JsonFields } from '../../../../src/base/json.ts'
import { maskOf, shownValue } from '../../../../src/skills/gate/mask.ts'
import { deployManifest } from '../deploy-manifest.ts'

const secretTag = { name: 'image_tag', type: 'object', required: true, secret: true }
const maskFor = (inputs: JsonFields) => maskOf(deployManifest({ 'signature.inputs.1': secretTag }), inputs)
const none = maskFor({})

describe('the mask of a skill', () => {
  test('hides each text and number of a secret input, and shows those of the others', () => {
    const { text, value } = maskFor({ app_name: 'web-1', image_tag: { user: 'hush-hush', pins: [1234567, 42], on: true, none: null } })
    expect(text('web-1 hush-hush 1234567 is true')).toBe('web-1 [secret] [secret] is true')
    expect(value({ a: ['xhush-hush', 1234567, 42, 41, true, null], 'hush-hush': 'web-1' })).toEqual({
      a: ['x[secret]', '[secret]', '[secret]', 41, true, null],
      '[secret]': 'web-1',
    })
  })

  test('hides a short secret only where it is the whole value: it stands in other texts by chance', () => {
    const { text, value } = maskFor({ image_tag: 'abc' })
    expect([text('abc'), value(['abc', 'abcd', 3])]).toEqual(['abc', ['[secret]', 'abcd', 3]])
  })

  test('shows the name of a secret of the deployment, whose value is not there', () => {
    const { text } = maskFor({ image_tag: { secret: 'REFLEX_TOOL_X' } })
    expect(text('REFLEX_TOOL_X is not set')).toBe('REFLEX_TOOL_X is not set')
  })

  test('hides a number that a secret text writes, and shows a truth value that one writes', () => {
    expect(maskFor({ image_tag: 'true' }).value([true, 'true'])).toEqual([true, '[secret]'])
    expect(maskFor({ image_tag: '1234567' }).value([1234567])).toEqual(['[secret]'])
  })

  test('hides the whole of what looks like a secret, and no address', () => {
    const token = 'ghp_0123456789abcdefghijABCDEFGHIJ'
    expect(none.text(`use ${token} here`)).toBe('[secret]')
    expect(none.text('mail ann@example.org')).toBe('mail ann@example.org')
    const shown = { password: 'x', list: [5555555555554444, 5555555555554445], [token]: 1 }
    expect(none.value(shown)).toEqual({ password: '[secret]', list: ['[secret]', 5555555555554445], '[secret]': 1 })
    const plain = { a: ['b', 1, null, true], secret: '' }
    expect(none.value(plain)).toBe(plain)
  })
})

describe('a value as part of a sentence', () => {
  const shown = (value: unknown) => shownValue(none, value)

  test('is its JSON, cut after 200 characters', () => {
    expect([shown(undefined), shown(null), shown({ a: [1, 'b'] })]).toEqual(['(nothing)', 'null', '{"a":[1,"b"]}'])
    expect(shown('x'.repeat(198))).toBe(`"${'x'.repeat(198)}"`)
    expect(shown('x'.repeat(199))).toBe(`"${'x'.repeat(199)}…`)
  })

  test.each<[string, (room: number) => unknown]>([
    ['a text', (room) => 'x'.repeat(room)],
    ['the name of a field, and its number', (room) => ({ ['x'.repeat(room - 4)]: 1 })],
    ['null, after another', (room) => ({ a: 'x'.repeat(room - 6), b: null })],
    ['a text, after others', (room) => ['', [true], { b: 'x'.repeat(room - 9) }]],
  ])('is not walked beyond 20000 characters of %s', (_, sized) => {
    const long = '(more than 20000 characters)'
    expect([shown(sized(20_000)), shown(sized(20_001))]).toEqual([expect.stringMatching(/^.{200}…$/), long])
  })

  test('counts what follows a part that takes all the room', () => {
    expect(shown({ a: 'x'.repeat(19_999), b: 1 })).toBe('(more than 20000 characters)')
  })
})
