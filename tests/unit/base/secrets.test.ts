import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { findAny, deploymentHider, deploymentSecrets, hideInError, secretHider } from '../../../src/base/secrets.ts'
import { assertProperty } from '../../support/property.ts'

const SECRET = 'Bearer s3cr3t+va/ue==0123'
const hider = secretHider([SECRET, 'quoted"and\\slashed\n12345'])

describe('a secret is taken out', () => {
  test.each([
    ['as it is', `x ${SECRET} y`, 'x [secret] y'],
    ['by its word', 'token=s3cr3t+va/ue==0123;', 'token=[secret];'],
    ['percent-encoded', `?a=${encodeURIComponent(SECRET)}&b`, '?a=[secret]&b'],
    ['percent-encoded in small letters', '?a=s3cr3t%2bva%2fue%3d%3d0123', '?a=[secret]'],
    ['as a form', `a=${new URLSearchParams({ a: SECRET }).toString().slice(2)}`, 'a=[secret]'],
    ['within JSON', JSON.stringify({ a: [{ b: `x${SECRET}` }] }), '{"a":[{"b":"x[secret]"}]}'],
    ['as the name of a field', JSON.stringify({ [SECRET]: 1 }), '{"[secret]":1}'],
    ['escaped within JSON', JSON.stringify({ a: 'quoted"and\\slashed\n12345' }), '{"a":"[secret]"}'],
    [
      'escaped within JSON within JSON',
      JSON.stringify({ a: JSON.stringify({ b: 'quoted"and\\slashed\n12345' }) }),
      JSON.stringify({ a: '{"b":"[secret]"}' }),
    ],
  ])('%s', (_how, text, expected) => {
    expect(hider.finds(text)).toBe(true)
    expect(hider.text(text)).toBe(expected)
  })

  test.each([0, 1, 2, 3, 4, 5])('in base64, behind %i bytes', (before) => {
    for (const after of ['', 'x', 'xy']) {
      const encoded = btoa('abcdef'.slice(0, before) + SECRET + after)
      expect(hider.text(encoded)).toContain('[secret]')
      expect(hider.text(encoded).length).toBeLessThan(30)
      expect(hider.finds(encoded.replaceAll('+', '-').replaceAll('/', '_'))).toBe(true)
    }
  })

  test('from a value, which is the same where it holds none', () => {
    const value = { a: ['x', { b: 1 }], c: null }
    expect(hider.value(value)).toBe(value)
    expect(hider.value({ ...value, d: [SECRET] })).toEqual({ ...value, d: ['[secret]'] })
  })

  test('from an error, which stays what it is', () => {
    const error = Object.assign(new TypeError(`no: ${SECRET}`), { status: 500 })
    hideInError(error, hider)
    expect([error.message, error.status, error instanceof TypeError]).toEqual(['no: [secret]', 500, true])
    expect(error.stack).not.toContain('s3cr3t')
  })
})

test('a value is cut below 64 levels, whether it holds a secret or not', () => {
  const hider = secretHider([SECRET])
  const nested = (levels: number, end: unknown): unknown => (levels === 0 ? end : [nested(levels - 1, end)])
  for (const end of ['plain', SECRET]) expect(JSON.stringify(hider.value(nested(2000, end)))).toBe(JSON.stringify(nested(65, '[too deep]')))
  const allowed = nested(64, ['plain'])
  expect(hider.value(allowed)).toBe(allowed)
})

test('a secret three levels of JSON deep is found in a text that is not JSON itself', () => {
  const hider = secretHider(['quoted"and\\slashed\n12345'])
  const deep = (text: string) => `it failed: ${JSON.stringify(JSON.stringify(JSON.stringify(text)))}`
  const text = deep('quoted"and\\slashed\n12345')
  expect(hider.finds(text)).toBe(true)
  expect(hider.text(text)).toBe(deep('[secret]'))
})

test('a secret three levels of JSON deep is found in a text of a value', () => {
  const hider = secretHider(['quoted"and\\slashed\n12345'])
  const deep = (text: string) => ({ a: [`it failed: ${JSON.stringify(JSON.stringify(JSON.stringify(text)))}`] })
  expect(hider.value(deep('quoted"and\\slashed\n12345'))).toEqual(deep('[secret]'))
})

test('text beside a match that is an escape of JSON stays JSON', () => {
  const escapes = secretHider(['n1234567', 'u0000abcd'])
  const text = JSON.stringify({ a: '\n1234567', b: '\u0000abcd', c: 'n1234567' })
  expect(JSON.parse(escapes.text(text))).toEqual({ a: '\n1234567', b: '\u0000abcd', c: '[secret]' })
})

test('the secrets of a deployment are those for tools, and what is named as a secret, from eight characters on', () => {
  const variables = {
    REFLEX_TOOL_A: 'value-of-a',
    REFLEX_TOOL_A_HOSTS: 'tickets.example.com',
    REFLEX_ADMIN_KEY: 'admin-key-value',
    OPENAI_COMPATIBLE_API_KEY: 'model-key-value',
    MY_PASSWORD: 'short',
    REFLEX_MODEL: 'workers-ai/model',
    DB: {},
  }
  expect(deploymentSecrets(variables).map(({ name }) => name)).toEqual([
    'REFLEX_TOOL_A',
    'REFLEX_ADMIN_KEY',
    'OPENAI_COMPATIBLE_API_KEY',
    'MY_PASSWORD',
  ])
  const text = 'value-of-a tickets.example.com admin-key-value model-key-value short workers-ai/model'
  expect(deploymentHider(variables).text(text)).toBe('[secret] tickets.example.com [secret] [secret] short workers-ai/model')
  expect(deploymentHider({ REFLEX_MODEL: 'offline' }).finds('anything')).toBe(false)
})

test('of many texts, any is found wherever it stands, and none where none does', () => {
  const letters = fc.array(fc.constantFrom('a', 'b', 'é', '漢'), { minLength: 4, maxLength: 9 }).map((parts) => parts.join(''))
  assertProperty(
    'base/secrets',
    fc.property(fc.array(letters, { maxLength: 5 }), fc.array(letters, { maxLength: 12 }), (patterns, parts) => {
      const text = parts.join('')
      expect(findAny(patterns)(text)).toBe(patterns.some((pattern) => text.includes(pattern)))
    }),
    { numRuns: 2000 },
  )
})

describe('an API key is masked by its form', () => {
  const key = `rfx_0123456789abcdef_${'aB3-_'.repeat(9).slice(0, 43)}`
  const ofNone = deploymentHider({})

  test('in text, in JSON and in names of fields, beside secrets known by value', () => {
    const ofOne = deploymentHider({ SOME_TOKEN: 'known-by-value' })
    expect(ofNone.text(`Bearer ${key}.`)).toBe('Bearer [secret].')
    expect(ofNone.value({ [key]: [`x${key}`] })).toEqual({ '[secret]': ['x[secret]'] })
    expect(ofOne.text(JSON.stringify({ a: `known-by-value ${key}` }))).toBe('{"a":"[secret] [secret]"}')
    expect([ofNone.finds(key), ofNone.finds(key)]).toEqual([true, true])
  })

  test.each(['rfx_', key.slice(0, -1), key.replace('a', 'A'), key.replace('rfx', 'rfy')])('but not %s', (text) => {
    expect(ofNone.finds(text)).toBe(false)
    expect(ofNone.text(text)).toBe(text)
  })
})
