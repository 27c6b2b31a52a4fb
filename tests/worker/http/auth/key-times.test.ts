import { env } from 'cloudflare:workers'
import { expect, test, vi } from 'vitest'
import { forgetKey, isKeyEnded } from '../../../../src/http/auth/middleware.ts'
import { call, problem } from '../../../support/http.ts'

type Listed = { id: string; expires_at?: string; used_at: string | null }

const create = async (fields: object = {}): Promise<{ id: string; key: string; expires_at?: string }> => {
  const { status, body } = await call('/v1/keys', { json: { name: 'mail', roles: ['viewer'], scopes: ['*'], ...fields } })
  expect(status).toBe(201)
  return body
}
const listed = async (id: string): Promise<Listed | undefined> => (await call('/v1/keys')).body.items.find((key: Listed) => key.id === id)
const set = (column: 'expires_at' | 'used_at', value: number, id: string) =>
  env.DB.prepare(`UPDATE keys SET ${column} = ?1 WHERE id = ?2`).bind(value, id).run()

test('a key is refused from its time on, and says when that was', async () => {
  const { id, key, expires_at } = await create({ expires_at: '2031-01-01T01:00:00+01:00' })
  expect(expires_at).toBe('2031-01-01T00:00:00.000Z')
  expect((await listed(id))?.expires_at).toBe(expires_at)
  await set('expires_at', Date.parse('2026-01-01T00:00:00Z'), id)
  const refused = await call('/v1/key', { key })
  expect(refused).toMatchObject(problem(401))
  expect(refused.body.detail).toBe('The key mail expired at 2026-01-01T00:00:00.000Z.')
  expect(await listed((await create()).id)).not.toHaveProperty('expires_at')
})

test('a key that would be expired at once is not created', async () => {
  const past = { name: 'mail', roles: ['viewer'], scopes: ['*'], expires_at: '2020-01-01T00:00:00Z' }
  expect((await call('/v1/keys', { json: past })).status).toBe(400)
})

test('the last use of a key is known to an hour, and is no write for each request', async () => {
  const { id, key } = await create()
  expect((await listed(id))?.used_at).toBeNull()
  await call('/v1/key', { key: `${key.slice(0, -1)}${key.endsWith('A') ? 'B' : 'A'}` })
  expect((await listed(id))?.used_at).toBeNull()
  expect((await call('/v1/key', { key })).status).toBe(200)
  await vi.waitFor(async () => expect((await listed(id))?.used_at).toMatch(/^20/), { timeout: 20_000 })
  await set('used_at', 1, id)
  expect((await call('/v1/key', { key })).status).toBe(200)
  expect((await listed(id))?.used_at).toBe('1970-01-01T00:00:00.001Z')
})

test('a key has ended once it is deleted or expires, and not while D1 is away', async () => {
  const ended = ({ id }: { id: string }) => (forgetKey(id), isKeyEnded(env, { key_id: id }))
  const [valid, over, gone] = [await create(), await create(), await create()]
  await set('expires_at', Date.now() - 1, over.id)
  expect((await call(`/v1/keys/${gone.id}`, { method: 'DELETE' })).status).toBe(204)
  expect([await ended(valid), await ended(over), await ended(gone), await ended({ id: 'admin' })]).toEqual([false, true, true, false])
  const away = vi.spyOn(env.DB, 'prepare').mockImplementation(() => {
    throw new Error('D1 is away')
  })
  expect([await ended(valid), await ended(over)]).toEqual([false, false])
  away.mockRestore()
})
