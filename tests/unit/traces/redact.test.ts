import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { deploymentMask, keyedMask, withoutSecretFields } from '../../../src/traces/keyed-hash.ts'
import { isMask, maskedTexts, maskOnce, plainMask, redactor } from '../../../src/traces/redact.ts'
import { assertProperty } from '../../support/property.ts'

const redact = (value: unknown): unknown => redactor()(value)

describe('redact', () => {
  test.each(['password', 'PASSWORD', 'api_key', 'apiKey', 'API-Key', 'accessToken', 'Authorization', 'cookie', 'client_secret'])(
    'hides %s',
    (name) => {
      expect(redact({ [name]: 'x', other: 1 })).toEqual({ [name]: '[redacted]', other: 1 })
    },
  )

  test.each(['tokens', 'passwords_changed', 'secretary', 'content'])('shows %s', (name) => {
    expect(redact({ [name]: 'x' })).toEqual({ [name]: 'x' })
  })

  test('hides the fields that are named, beside the usual ones, whatever their value is', () => {
    const value = { Email: ['a@b.c'], list: [{ e_mail: { user: 'a' }, token: 1 }] }
    expect(redactor(['eMail'])(value)).toEqual({ Email: '[redacted]', list: [{ e_mail: '[redacted]', token: '[redacted]' }] })
  })

  test('hides the value of a pair whose key is such a name', () => {
    const set = { action_type: 'set_scratch', key: 'api-key', value: { any: 'thing' } }
    expect(redact([set, { key: 'color', value: 'red' }])).toEqual([
      { ...set, value: '[redacted]' },
      { key: 'color', value: 'red' },
    ])
  })

  test('hides such a value behind names that it has seen', () => {
    const own = redactor()
    expect(own({ key: 'color', value: 'red' })).toEqual({ key: 'color', value: 'red' })
    expect(own({ key: 'token', value: 'x' })).toEqual({ key: 'token', value: '[redacted]' })
    expect(own([{ deep: [{ value: 'x', key: 'token' }] }])).toEqual([{ deep: [{ value: '[redacted]', key: 'token' }] }])
  })

  test('shows the value of a pair whose key is not a text, or that has other names', () => {
    const shown = [{ key: 1, value: 'x' }, { value: 'x' }, { key: 'token', values: 'x', other: 'y' }, { key: ['token'], value: 'x' }]
    expect(redact(shown)).toBe(shown)
    expect(redact(['token', 'password'])).toEqual(['token', 'password'])
  })

  test('enters 31 levels, with and without such a field', () => {
    const nested = (levels: number, end: unknown): unknown => (levels === 0 ? end : [nested(levels - 1, end)])
    const within = nested(31, { other: 'x' })
    expect(redact(within)).toBe(within)
    expect(redact(nested(31, { token: 'x' }))).toEqual(nested(31, { token: '[redacted]' }))
    expect(redact(nested(32, { other: 'x' }))).toEqual(nested(32, '[too deep]'))
  })

  test('leaves its input as it was', () => {
    const value = { inner: { token: 'x' } }
    redact(value)
    expect(value).toEqual({ inner: { token: 'x' } })
  })

  test('stops at a depth that no log needs', () => {
    let value: unknown = { token: 'x' }
    for (let level = 0; level < 100_000; level++) value = { inner: value }
    expect(JSON.stringify(redact(value))).toContain('[too deep]')
  })

  test('copies __proto__ as a field', () => {
    const copied = redact(JSON.parse('{"__proto__":{"token":"x","admin":true}}'))
    expect(JSON.stringify(copied)).toBe('{"__proto__":{"token":"[redacted]","admin":true}}')
    expect(Object.getPrototypeOf(copied)).toBe(Object.prototype)
  })

  test('gives back what has no such field', () => {
    assertProperty(
      'traces/redact',
      fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
        expect(redact(value)).toBe(value)
      }),
    )
  })

  test('copies only what leads to such a field', () => {
    const value = { shown: { a: 1 }, hidden: [{ token: 'x' }] }
    const copied = redact(value) as typeof value
    expect(copied).toEqual({ shown: { a: 1 }, hidden: [{ token: '[redacted]' }] })
    expect(copied.shown).toBe(value.shown)
  })

  test('hides a field however long its name is', () => {
    const name = `pass${'_'.repeat(100_000)}word`
    expect(redact({ [name]: 'x', [`${name}s`]: 'y' })).toEqual({ [name]: '[redacted]', [`${name}s`]: 'y' })
  })

  test('still knows a secret field after more names than it remembers', () => {
    const own = redactor()
    for (let index = 0; index < 12_000; index++) own({ [`name-${index}`]: 1 })
    expect(own({ token: 'x' })).toEqual({ token: '[redacted]' })
  })
})

describe('a keyed hash', () => {
  const keyed = (secret: string) => redactor([], keyedMask(secret))

  test('is the same for equal values, and another with another key', () => {
    const [first, second] = [keyed('one key'), keyed('another key')]
    const shown = first({ token: { b: 1, a: [2] } }) as { token: string }
    expect(shown.token).toMatch(/^sha256:[0-9a-f]{64}$/)
    expect(first({ Token: { a: [2], b: 1 } })).toEqual({ Token: shown.token })
    expect(first({ token: { a: [3], b: 1 } })).not.toEqual(shown)
    expect(second({ token: { b: 1, a: [2] } })).not.toEqual(shown)
  })

  test('of a recording is not hashed again', () => {
    const once = redactor([], maskOnce(keyedMask('one key')))
    const shown = once({ token: 'x', secret: '[redacted]' })
    expect(shown).toEqual({ token: expect.stringMatching(/^sha256:/), secret: '[redacted]' })
    expect(once(shown)).toBe(shown)
  })

  test('masks an event by the secret of the deployment, and what is masked already not again', () => {
    const env = { REFLEX_REDACTION_SECRET: ' sixteen letters! ' }
    const event = { type: 'a', payload: [{ token: 'x', password: '[redacted]' }] }
    const masked = withoutSecretFields(env, event)
    const token = keyedMask('sixteen letters!')('x')
    expect(masked).toEqual({ type: 'a', payload: [{ token, password: '[redacted]' }] })
    expect(withoutSecretFields(env, masked)).toBe(masked)
    expect(withoutSecretFields({}, event)).toEqual({ type: 'a', payload: [{ token: '[redacted]', password: '[redacted]' }] })
  })

  test('needs a secret that cannot be guessed', () => {
    expect(deploymentMask({ REFLEX_REDACTION_SECRET: '  fifteen letters  ' })('x')).toBe('[redacted]')
    expect(deploymentMask({})('x')).toBe('[redacted]')
    expect(deploymentMask({ REFLEX_REDACTION_SECRET: 'fifteen letters' })('x')).toBe('[redacted]')
    expect(deploymentMask({ REFLEX_REDACTION_SECRET: 'sixteen letters!' })('x')).toMatch(/^sha256:/)
  })
})

test('a mask is the whole text', () => {
  const hash = `sha256:${'0a'.repeat(32)}`
  expect([isMask('[redacted]'), isMask(hash)]).toEqual([true, true])
  const others = ['x [redacted]', `x${hash}`, `${hash}0`, hash.slice(0, -1), hash.toUpperCase(), 'sha256:', 1, null, [hash]]
  expect(others.filter(isMask)).toEqual([])
  expect(new Set(others.map(maskOnce(plainMask)))).toEqual(new Set(['[redacted]']))
})

describe('the texts that a mask hides', () => {
  const textsOf = (value: unknown) => maskedTexts(value, redact(value))

  test('are those of masked fields, at any depth of both', () => {
    expect(textsOf({ a: 'x', list: [{ token: 'one' }, { secret: { user: 'two', deep: ['three', 4, null, [{ a: 'five' }]] } }] })).toEqual([
      'one',
      'two',
      'three',
      'five',
    ])
  })

  test('are none where nothing is masked, or what is masked has no text', () => {
    const same = { a: 'x' }
    expect([maskedTexts(same, same), maskedTexts('x', 'x'), textsOf({ token: 1 }), textsOf({ token: null, cookie: true })]).toEqual([
      [],
      [],
      [],
      [],
    ])
    for (const [value, other] of [
      ['[redacted]', '[redacted]'],
      [undefined, '[redacted]'],
      ['x', 'y'],
      [{ a: 'x' }, 'y'],
      [{ a: 'x' }, null],
      [null, { a: 'x' }],
      ['x', { a: 'x' }],
    ])
      expect(maskedTexts(value, other)).toEqual([])
    expect(maskedTexts({ a: 'x', b: { c: 'y' } }, { a: '[redacted]', b: {} })).toEqual(['x'])
  })
})
