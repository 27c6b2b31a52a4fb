import { describe, expect, test } from 'vitest'
import { UsageError } from '../../../../cli/lib/cli-error.ts'
import { checkedKey, isUnencrypted, serverUrl, targetOf } from '../../../../cli/reflex/target.ts'

const stored = {
  current: 'prod',
  profiles: { prod: { url: 'https://prod.example.com', key: 'prod-key' }, dev: { url: 'http://127.0.0.1:8787', key: 'dev-key' } },
}
const nothing = { current: null, profiles: {} }

describe('the server and the key', () => {
  test.each([
    ['the profile in use', {}, {}, stored.profiles.prod],
    ['a named profile', { profile: 'dev' }, {}, stored.profiles.dev],
    ['a profile named by the environment', {}, { REFLEX_PROFILE: 'dev' }, stored.profiles.dev],
    ['the environment', {}, { REFLEX_URL: 'https://a.example.com/', REFLEX_KEY: 'env' }, { url: 'https://a.example.com', key: 'env' }],
    ['a named profile before the environment', { profile: 'dev' }, { REFLEX_URL: 'https://a.example.com' }, stored.profiles.dev],
    ['a flag before the environment', { key: 'flag' }, { REFLEX_KEY: 'env' }, { url: stored.profiles.prod.url, key: 'flag' }],
    ["the key of the URL's own profile", { url: 'http://127.0.0.1:8787/' }, {}, stored.profiles.dev],
  ])('are those of %s', (_, flags, env, expected) => {
    expect(targetOf(flags, env, stored)).toEqual(expected)
  })

  test('the key of a profile is not sent to another server', () => {
    expect(() => targetOf({ url: 'https://evil.example.com' }, {}, stored)).toThrow('No key is configured for https://evil.example.com')
    expect(() => targetOf({ profile: 'prod', url: 'https://evil.example.com' }, {}, stored)).toThrow(UsageError)
  })

  test('are missing without a login, and an unknown profile is named', () => {
    expect(() => targetOf({}, {}, nothing)).toThrow('No server is configured.')
    expect(() => targetOf({ profile: 'test' }, {}, stored)).toThrow('There is no profile test.')
  })
})

test('a URL is an origin with a path; a key is never quoted in an error', () => {
  expect(serverUrl('https://example.com/reflex//')).toBe('https://example.com/reflex')
  for (const text of ['example.com', 'ftp://example.com', 'https://user:secret@example.com', 'https://example.com?x=1'])
    expect(() => serverUrl(text)).toThrow(UsageError)
  expect(checkedKey(' abc \n')).toBe('abc')
  expect(() => checkedKey('top secret')).toThrow(/^(?!.*top).*$/)
  expect(() => checkedKey('')).toThrow(UsageError)
})

test.each([
  ['http://localhost:8787', false],
  ['http://127.0.0.1', false],
  ['http://[::1]:80', false],
  ['https://example.com', false],
  ['http://example.com', true],
  ['http://localhost.example.com', true],
])('%s is unencrypted on the way: %s', (url, expected) => expect(isUnencrypted(url)).toBe(expected))
