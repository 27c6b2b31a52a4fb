import { describe, expect, test } from 'vitest'
import { createKey, parseKey, hashKey, sameHash } from '../../../../src/http/auth/middleware.ts'

describe('a key', () => {
  test('is url-safe, carries its id and 256 random bits, and is kept as a hash', () => {
    const { id, key, hash } = createKey()
    expect(key).toMatch(/^rfx_[0-9a-f]{16}_[A-Za-z0-9_-]{43}$/)
    expect(parseKey(key)).toEqual({ id, secret: key.slice(`rfx_${id}_`.length) })
    expect(hash).toBe(hashKey(key))
    expect(hash).not.toContain(key)
  })

  test('is never the same twice', () => {
    const keys = Array.from({ length: 50 }, createKey)
    expect(new Set(keys.map(({ id }) => id)).size).toBe(50)
    expect(new Set(keys.map(({ key }) => key)).size).toBe(50)
  })

  test.each([
    '',
    'rfx_',
    'rfx_0123456789abcdef_',
    'rfx_0123456789abcdeX_'.padEnd(64, 'a'),
    ' rfx_0123456789abcdef_'.padEnd(65, 'a'),
    'x'.repeat(100_000),
  ])('is not %.30s…', (text) => {
    expect(parseKey(text)).toBeNull()
  })

  test('hashes with SHA-256 in hex', () => {
    expect(hashKey('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
  })

  test.each([
    ['abc', 'abc', true],
    ['abc', 'abd', false],
    ['abc', 'abcd', false],
    ['', '', true],
    ['é', 'e', false],
  ])('compares %j with %j: %s', (left, right, same) => {
    expect(sameHash(left, right)).toBe(same)
  })
})
