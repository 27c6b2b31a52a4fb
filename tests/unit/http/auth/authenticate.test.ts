import { describe, expect, test, vi } from 'vitest'
import { type KeyRecord, type KeyLookup, authenticate, createKey } from '../../../../src/http/auth/middleware.ts'

const created = createKey()
const record: KeyRecord = { id: created.id, name: 'ci', roles: ['publisher'], scopes: ['team-a/*'], hash: created.hash }
const keys: KeyLookup = async (id) => (id === record.id ? record : null)
const configured = { admin_key: 'correct horse', keys, any_key: async () => true }
const principal = { key_id: record.id, name: 'ci', roles: ['publisher'], scopes: ['team-a/*'] }
const down = async () => {
  throw new Error('D1_ERROR: secret internals')
}

describe('authenticate', () => {
  test.each(['Bearer correct horse', 'bearer correct horse', 'Bearer   correct horse '])('lets the admin in: %j', async (header) => {
    expect(await authenticate(header, configured)).toEqual({
      ok: true,
      principal: { key_id: 'admin', name: 'admin', roles: ['admin'], scopes: ['*'] },
    })
  })

  test('lets a key in, with what it allows and without its hash', async () => {
    expect(await authenticate(`Bearer ${created.key}`, configured)).toEqual({ ok: true, principal })
  })

  test.each<[string, string | null, string]>([
    ['no header', null, 'missing'],
    ['an empty header', '', 'malformed'],
    ['no token', 'Bearer', 'malformed'],
    ['a blank token', 'Bearer  ', 'malformed'],
    ['the scheme in another place', 'Basic Bearer correct horse', 'malformed'],
    ['another scheme', `Basic ${created.key}`, 'malformed'],
    ['a bare key', created.key, 'malformed'],
    ['a wrong admin key', 'Bearer correct hors', 'unknown'],
    ['an admin key in another case', 'Bearer Correct horse', 'unknown'],
    ['a known id with another secret', `Bearer ${created.key.slice(0, -1)}${created.key.endsWith('A') ? 'B' : 'A'}`, 'unknown'],
    ['an unknown id', `Bearer rfx_0000000000000000_${'a'.repeat(43)}`, 'unknown'],
    ['a hash instead of its key', `Bearer ${created.hash}`, 'unknown'],
  ])('refuses %s', async (_name, header, reason) => {
    expect(await authenticate(header, configured)).toMatchObject({ ok: false, reason })
  })

  test.each([undefined, '', '  '])('is closed if the admin key is %j and no other key exists, and says what to set', async (admin_key) => {
    for (const header of [null, 'Bearer x', 'Bearer undefined', 'Bearer ', `Bearer ${created.key}`]) {
      const outcome = await authenticate(header, { admin_key, keys: async () => null, any_key: async () => false })
      expect(outcome).toMatchObject({
        ok: false,
        reason: 'no_key_configured',
        detail: expect.stringContaining('wrangler secret put REFLEX_ADMIN_KEY'),
      })
      expect(outcome).toMatchObject({ detail: expect.stringContaining('.dev.vars') })
    }
  })

  test('needs no admin key where there are keys', async () => {
    const credentials = { admin_key: undefined, keys, any_key: async () => true }
    expect(await authenticate(`Bearer ${created.key}`, credentials)).toEqual({ ok: true, principal })
    expect(await authenticate('Bearer x', credentials)).toMatchObject({ ok: false, reason: 'unknown' })
    expect(await authenticate(null, { ...credentials, any_key: down })).toMatchObject({ ok: false, reason: 'missing' })
  })

  test('says that it cannot tell while the lookup fails, and nothing of why; the admin still gets in', async () => {
    const outcome = await authenticate(`Bearer ${created.key}`, { ...configured, keys: down })
    expect(outcome).toMatchObject({ ok: false, reason: 'unavailable' })
    expect(JSON.stringify(outcome)).not.toContain('internals')
    expect(await authenticate('Bearer correct horse', { ...configured, keys: down })).toMatchObject({ ok: true })
  })

  test('takes the admin key without the spaces around it', async () => {
    expect(await authenticate('Bearer correct horse', { ...configured, admin_key: ' correct horse ' })).toMatchObject({ ok: true })
  })

  test('says that the lookup fails, and not that no key is configured, where both may be', async () => {
    const credentials = { admin_key: undefined, keys: down, any_key: async () => false }
    expect(await authenticate(`Bearer ${created.key}`, credentials)).toMatchObject({ reason: 'unavailable' })
  })

  test('says what to do where the database has no tables: no key can be configured there', async () => {
    const laid = async () => {
      throw new Error('Failed query', { cause: new Error('D1_ERROR: no such table: keys: SQLITE_ERROR') })
    }
    const credentials = { admin_key: undefined, keys: laid, any_key: laid }
    for (const header of [null, 'Bearer x']) expect(await authenticate(header, credentials)).toMatchObject({ reason: 'no_key_configured' })
    const outcome = await authenticate(`Bearer ${created.key}`, credentials)
    expect(outcome).toMatchObject({ reason: 'unavailable', detail: expect.stringContaining('apply the migrations') })
  })

  test('refuses a key from the time on that it expires, and says when that was', async () => {
    vi.useFakeTimers()
    vi.setSystemTime('2026-02-03T04:05:06.000Z')
    const expiring = (expires_at: number | null) => ({ ...configured, keys: async () => ({ ...record, expires_at }) })
    const header = `Bearer ${created.key}`
    expect(await authenticate(header, expiring(Date.now() + 1))).toMatchObject({ ok: true })
    expect(await authenticate(header, expiring(null))).toMatchObject({ ok: true })
    expect(await authenticate(header, expiring(Date.now()))).toMatchObject({
      ok: false,
      reason: 'unknown',
      detail: expect.stringContaining('2026-02-03T04:05:06'),
    })
    vi.useRealTimers()
  })

  test('notes the use of a key that is let in, and of no other', async () => {
    const used = vi.fn<(key: KeyRecord) => void>()
    for (const key of ['correct horse', 'guess', `${created.key.slice(0, -2)}AA`])
      await authenticate(`Bearer ${key}`, { ...configured, used })
    expect(used).not.toHaveBeenCalled()
    await authenticate(`Bearer ${created.key}`, { ...configured, used })
    expect(used.mock.calls).toEqual([[record]])
  })

  test('asks whether it may look for an id, and only for one', async () => {
    const before_look = vi.fn<(id?: string) => Promise<void>>(async () => {})
    await authenticate('Bearer guess', { ...configured, before_look })
    expect(before_look).not.toHaveBeenCalled()
    await authenticate(`Bearer ${created.key}`, { ...configured, before_look })
    expect(before_look.mock.calls).toEqual([[created.id]])
  })

  test('hashes as often for an unknown id as for a known one', async () => {
    const digest = vi.spyOn(crypto.subtle, 'digest')
    const countFor = async (key: string) => {
      digest.mockClear()
      await authenticate(`Bearer ${key}`, configured)
      return digest.mock.calls.length
    }
    const known = await countFor(created.key)
    expect(await countFor(`rfx_0000000000000000_${'a'.repeat(43)}`)).toBe(known)
    expect(await countFor('guess')).toBe(known)
    digest.mockRestore()
  })

  test('does not ask about an id for what has none', async () => {
    const lookup = vi.fn<KeyLookup>(keys)
    await authenticate('Bearer guess', { ...configured, keys: lookup })
    expect(lookup).not.toHaveBeenCalled()
  })
})
