import { describe, expect, test } from 'vitest'
import type { Json } from '../../../../src/base/json.ts'
import { isSecretName, looksPlain, sensitiveIn } from '../../../../src/skills/gate/mask.ts'

const kindOf = (value: Json) => sensitiveIn(value, { emails: false })
const kinds = (...values: Json[]) => [...new Set(values.map(kindOf))]
const TOKEN = `hf_${'aB3'.repeat(7)}`

describe('a card number', () => {
  test.each([
    ['Visa, of 13 digits', '4222222222222'],
    ['Visa, of 16 digits', '4012888888881881'],
    ['Visa, of 19 digits', '4000000000000000006'],
    ['Mastercard', '5555555555554444'],
    ['Mastercard of the second range', '2223003122003222'],
    ['American Express', '378282246310005'],
    ['Discover', '6011111111111117'],
    ['Diners', '30569309025904'],
    ['JCB', '3530111333300000'],
  ])('of %s is found, alone, in groups, and beside other numbers', (_, digits) => {
    const groups = digits.replaceAll(/(\d{4})(?=\d)/g, '$1 ')
    const beside = [`12 ${groups} 34`, `7 ${digits}`, `${digits}-7`, `pay ${digits}.`, `n${digits}n`]
    expect(kinds(digits, groups, groups.replaceAll(' ', '-'), ...beside, { a: [`card ${digits}`] })).toEqual(['card_number'])
    const wrong = `${digits.slice(0, -1)}${(Number(digits.at(-1)) + 1) % 10}`
    expect(kinds(`at 1${digits}`, `at ${digits}1`, `at ${wrong}`)).toEqual([null])
  })

  test('is found as a number, too', () => {
    expect(kinds(378282246310005, [378282246310005])).toEqual(['card_number'])
    expect(kinds(378282246310006, 12)).toEqual([null])
  })

  test('is no group of digits that is short, or stands apart from the others', () => {
    expect(kinds('4111', '4111  1111  1111  1111', '4111_1111_1111_1111')).toEqual([null])
    expect(kindOf('4111 1111 1111 1111 as 4')).toBe('card_number')
  })
})

describe('a value', () => {
  test('is as sensitive as its first part that is', () => {
    expect(kindOf(['x', { password: 'y' }, TOKEN])).toBe('password')
    expect(kindOf(['x', TOKEN, { password: 'y' }])).toBe('token')
    expect(kindOf(['x', 1, null, true, { a: {} }])).toBeNull()
  })

  test('is no address, unless addresses count', () => {
    const addresses = [
      'to ann@example.org.',
      '<ann@example.org>',
      'x;ann@example.org,y',
      '(ann@example.org)',
      '"ann@example.org"',
      'a:ann@b.org',
    ]
    const counted = (...values: Json[]) => [...new Set(values.map((value) => sensitiveIn(value, { emails: true })))]
    expect([kinds(...addresses), counted(...addresses, ...addresses.map((one) => [one]))]).toEqual([[null], ['email']])
    expect(counted('ann@example', 'ann@@example.org', 'ann@example.org..', '@example.org')).toEqual([null])
  })

  test('is a token only as a whole word, of 16 characters or more', () => {
    expect([kindOf('xoxb-01234567890'), kindOf('xoxb-0123456789')]).toEqual(['token', null])
    expect(kinds(TOKEN, `a="${TOKEN}"`, `https://x/${TOKEN}?a`, `${TOKEN}@host`, `[${TOKEN}]`)).toEqual(['token'])
    expect(kinds(`x${TOKEN}`, `${TOKEN}.x`, 'hf_short', 'gh')).toEqual([null])
  })
})

describe('a plain value', () => {
  test('has no part and no name that looks like a secret', () => {
    const plain: Json[] = [{ a: ['b', 1, null] }, 'x', 1, { 'ann@example.org': 'ann@example.org' }]
    const others: Json[] = [TOKEN, [TOKEN], { [TOKEN]: 1 }, { pwd: 'x' }, { a: { pwd: 1 } }, 378282246310005]
    expect([plain.filter(looksPlain), others.filter(looksPlain)]).toEqual([plain, []])
  })

  test('is not one that is deeper than what is searched', () => {
    const nested = (levels: number): Json => (levels === 0 ? 'x' : [nested(levels - 1)])
    expect([looksPlain(nested(64)), looksPlain(nested(65))]).toEqual([true, false])
  })
})

test('a name says that a value is secret, in any spelling, where there is a value', () => {
  const names = ['password', 'PassWd', 'api_key', 'API-KEY', 'refresh_token', 'Authorization']
  expect(names.filter((name) => isSecretName(name, 0))).toEqual(names)
  expect(['passwords', 'key', 'token', 'my_password'].filter((name) => isSecretName(name, 'x'))).toEqual([])
  expect([null, '', false].map((value) => isSecretName('password', value))).toEqual([false, false, true])
})
