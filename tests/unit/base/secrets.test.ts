import * as fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import {
  findAny,
  deploymentHider,
  deploymentSecrets,
  hideAll,
  hideInError,
  hidesNothing,
  pairsOf,
  quoteHider,
  secretHider,
  type SecretHider,
} from '../../../src/base/secrets.ts'
import { assertProperty } from '../../support/property.ts'

const SECRET = 'Bearer s3cr3t+va/ue==0123'
let hider: SecretHider
beforeEach(() => {
  hider = secretHider([SECRET, 'quoted"and\\slashed\n12345'])
})

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
      const standard = btoa('abcdef'.slice(0, before) + SECRET + after)
      // A character of base64 has six bits. Those that hold bits of the secret alone are hidden.
      const [from, to] = [Math.ceil((before * 4) / 3), Math.floor(((before + SECRET.length) * 4) / 3)]
      for (const encoded of [standard, standard.replaceAll('+', '-').replaceAll('/', '_')]) {
        expect(hider.finds(encoded)).toBe(true)
        expect(hider.text(encoded)).toBe(`${encoded.slice(0, from)}[secret]${encoded.slice(to)}`)
      }
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

  test('from the stack of an error whose message has none, and the other way round', () => {
    const error = Object.assign(new Error('no'), { stack: `Error: no\n  at ${SECRET}` })
    hideInError(error, hider)
    expect([error.message, error.stack]).toEqual(['no', 'Error: no\n  at [secret]'])
    const other = Object.assign(new Error(`no: ${SECRET}`), { stack: ' {"at": 1}' })
    hideInError(other, hider)
    expect([other.message, other.stack]).toEqual(['no: [secret]', ' {"at": 1}'])
  })
})

describe('what is not a secret stays', () => {
  test('a word of a secret that is shorter than eight characters, and no secret at all', () => {
    expect(hider.text('Bearer of news')).toBe('Bearer of news')
    expect(secretHider(['1234567'])).toBe(hidesNothing)
    expect(secretHider([])).toBe(hidesNothing)
    expect(hidesNothing.finds('1234567')).toBe(false)
    expect(hidesNothing.text('1234567')).toBe('1234567')
  })

  test('a word of eight characters is hidden, also between several spaces, and one of seven is not', () => {
    const words = secretHider(['Basic  abcdefgh  1234567'])
    expect(words.text('abcdefgh 1234567 Basic')).toBe('[secret] 1234567 Basic')
    expect(words.finds(btoa('abcdefgh'))).toBe(true)
  })

  test('a text that is not JSON, though it begins like it, apart from the secret', () => {
    expect(hider.text(`[{ "a" ${SECRET}`)).toBe('[{ "a" [secret]')
    expect(hider.text(` {"a":  "${SECRET}"}`)).toBe('{"a":"[secret]"}')
    expect(hider.text(`1 {"a":  "${SECRET}"}`)).toBe('1 {"a":  "[secret]"}')
  })

  test('an error that says none, and what is no error', () => {
    const error = new Error('no')
    const { stack } = error
    hideInError(error, hider)
    expect([error.message, error.stack]).toEqual(['no', stack])
    delete error.stack
    hideInError(error, hider)
    expect(error.stack).toBeUndefined()
    const other = { message: SECRET }
    hideInError(other, hider)
    expect(other).toEqual({ message: SECRET })
  })

  test('a list, which is the same list where no text of it holds a secret', () => {
    const plain = ['x', 1, null, { a: SECRET }]
    expect(hideAll(hider, plain)).toBe(plain)
    expect(hideAll(hider, ['x', 1, `y ${SECRET}`, SECRET])).toEqual(['x', 1, 'y [secret]', '[secret]'])
  })
})

describe('a quotation', () => {
  const shown = (secret: string) => `<${secret.length}>`

  test('keeps its white space, and names the secret of each form that it hides', () => {
    const quoted = quoteHider([SECRET, 'abcd'], 4, shown)
    const text = `{ "a":  "${SECRET}", "b": "abcd", "c": "${encodeURIComponent(SECRET)}", "abcd":  1 }`
    expect(quoted.text(text)).toBe('{ "a":  "<25>", "b": "<4>", "c": "<25>", "<4>":  1 }')
    expect(quoted.value({ abcd: [` ${SECRET}`, 1] })).toEqual({ '<4>': [' <25>', 1] })
    expect(quoted.text('nothing')).toBe('nothing')
  })

  test('hides the longest secret that begins at a place, and names the first that has the form', () => {
    const quoted = quoteHider(['abcdefgh', 'abcdefgh12345678', 'xy abcdefgh'], 4, shown)
    expect(quoted.text('abcdefgh12345678 abcdefgh')).toBe('<16> <8>')
  })

  test('hides a short secret as it is, and not where others might have written it', () => {
    const quoted = quoteHider(['ab/d'], 4, shown)
    expect([quoted.text('ab/d'), quoted.finds('ab%2Fd'), quoted.finds(btoa('ab/d'))]).toEqual(['<4>', false, false])
    expect(quoteHider(['abc'], 4, shown)).toBe(hidesNothing)
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
    QUEUE_TOKEN: {},
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

test.each([
  ['REFLEX_WEBHOOK_OPS', true],
  ['REFLEX_WEBHOOK_OPS_HOSTS', false],
  ['REFLEX_HOOK_BILLING', true],
  ['REFLEX_HOOK_BILLING_SCOPES', false],
  ['REFLEX_TOOL_A_SCOPES', false],
  ['MY_REFLEX_TOOL_A', false],
  ['DEPLOY_TOKEN', true],
  ['deploy_secret', true],
  ['DB_PASSWD', true],
  ['GCP_CREDENTIAL', true],
  ['GCP_CREDENTIALS', true],
  ['API_TOKENS', false],
  ['SECRET_PLACE', false],
])('the variable %s holds a secret: %s', (name, holds) => {
  expect(deploymentSecrets({ [name]: 'some-value' })).toEqual(holds ? [{ name, value: 'some-value' }] : [])
})

test.each([
  ['OTEL_EXPORTER_OTLP_HEADERS', true],
  ['OTEL_EXPORTER_OTLP_TRACES_HEADERS', true],
  ['OTEL_EXPORTER_OTLP_METRICS_HEADERS', false],
  ['MY_OTEL_EXPORTER_OTLP_HEADERS', false],
  ['OTEL_EXPORTER_OTLP_HEADERS_OLD', false],
])('the headers in the variable %s hold secrets, from eight characters on: %s', (name, hold) => {
  const found = [
    { name, value: 'Basic abc' },
    { name, value: '12345678' },
  ]
  expect(deploymentSecrets({ [name]: 'authorization=Basic%20abc,a=12345678,b=1234567' })).toEqual(hold ? found : [])
})

test('pairs are split at commas and at the first equals sign, trimmed and decoded', () => {
  expect(pairsOf('a=b=c, d = e%20f ,nothing,g=100%,=h')).toEqual({ a: 'b=c', d: 'e f', g: '100%', '': 'h' })
  expect([pairsOf(''), pairsOf()]).toEqual([{}, {}])
})

test.each<[string, string[]]>([
  ['very short ones', ['ab', 'a1', 'wxyz']],
  ['one of three characters', ['abc', 'wxyz']],
  ['one that is longer than the longest shift', ['a'.repeat(300), 'b'.repeat(299) + 'c']],
])('texts are found, also %s', (_, patterns) => {
  const find = findAny(patterns)
  for (const pattern of patterns) {
    const before = '-'.repeat(700)
    for (const text of [pattern, `${before}${pattern}`, `${pattern}${before}`, `${before}${pattern}${before}`])
      expect(find(text)).toBe(true)
    expect(find(`${before}${pattern.slice(1)}-${pattern.slice(0, -1)}`)).toBe(false)
  }
  expect(find('')).toBe(false)
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
