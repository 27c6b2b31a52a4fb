import { describe, expect, test } from 'vitest'
import { maskCredentials, pastedSecrets } from '../../../src/base/secrets.ts'
import { redactor } from '../../../src/traces/redact.ts'

const TOKEN = `ghp_${'a1B2'.repeat(9)}`
const KEY = `-----BEGIN RSA PRIVATE KEY-----\n${'QUJD\n'.repeat(20)}-----END RSA PRIVATE KEY-----`

describe('what looks like a credential', () => {
  test.each([
    [`use ${TOKEN}, please`, 'use [secret: token], please'],
    [`It is ${TOKEN}. Or **${TOKEN}**!`, 'It is [secret: token]. Or **[secret: token]**!'],
    [`„${TOKEN}“ and ${TOKEN}’s`, '„[secret: token]“ and [secret: token]’s'],
    ['an unsigned eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.', 'an unsigned [secret: token].'],
    [`{"auth":"Bearer ${'x'.repeat(20)}"}`, '{"auth":"Bearer [secret: token]"}'],
    ['my password: hunter22!', 'my password: [secret: password]'],
    ['api_key="abcd1234" and more', 'api_key="[secret: password]" and more'],
    ['postgres://root:swordfish@db.example.com/x', 'postgres://root:[secret: password]@db.example.com/x'],
    [`before ${KEY} after`, 'before [secret: private_key] after'],
    [KEY.slice(0, 60), '[secret: private_key]'],
    ['pay with 4111 1111 1111 1111, exp 12/27', 'pay with [secret: card_number], exp 12/27'],
    ['4111-1111-1111-1111', '[secret: card_number]'],
    ['amex 3782 822463 10005', 'amex [secret: card_number]'],
    ['my visa is 4111111111111111.', 'my visa is [secret: card_number].'],
    [`4111 1111 1111 1111 and ${TOKEN}`, '[secret: card_number] and [secret: token]'],
  ])('is replaced in its place by its kind: %#', (text, shown) => {
    expect(maskCredentials(text)).toBe(shown)
    expect(maskCredentials(shown)).toBe(shown)
  })

  test.each([
    'a password is needed',
    'https://example.com/a?token=1',
    'the tokens of a call: 12',
    'skill sk-1',
    'password=[redacted]',
    '4111 1111 1111 1112',
    'order 4111111111111111',
    '1234 5678 9012 3456 and card 1234567890123',
    `api_key=sha256:${'0'.repeat(64)}`,
  ])('leaves other texts as they are: %s', (text) => {
    expect(maskCredentials(text)).toBe(text)
  })

  test('is masked in each text of a value, and nothing else changes', () => {
    const redact = redactor([], undefined, pastedSecrets)
    const value = { said: [{ text: `it is ${TOKEN}` }], n: 1 }
    expect(redact(value)).toEqual({ said: [{ text: 'it is [secret: token]' }], n: 1 })
    const plain = { said: [{ text: 'a token' }] }
    expect(redact(plain)).toBe(plain)
  })

  test('is found in a long text in a time that grows with its length', () => {
    const hostile = `password${' '.repeat(3)}= ${'-----BEGIN PRIVATE KEY-----'.repeat(40_000)} ghp_${'.'.repeat(400_000)}x`
    expect(maskCredentials(hostile).length).toBeLessThan(hostile.length)
  })
})
