import { env } from 'cloudflare:workers'
import { expect, test } from 'vitest'
import { teachingKeys } from '../../../../src/store/access/keys.ts'
import { call, keyFor, problem } from '../../../support/http.ts'

const create = (fields: object) => call('/v1/keys', { json: { name: 'mail', roles: ['publisher'], scopes: ['taught/*'], ...fields } })

test('a key that teaches is trusted by the scopes that it covers, and by no other', async () => {
  const teaching = await create({ teaches: true })
  expect(teaching).toMatchObject({ status: 201, body: { teaches: true } })
  const plain = await create({})
  expect(plain.body).not.toHaveProperty('teaches')
  expect(await teachingKeys(env.DB, 'taught/one')).toEqual([(teaching.body as { id: string }).id])
  expect(await teachingKeys(env.DB, 'other/one')).toEqual([])
  const listed = (await call('/v1/keys')).body as { items: { id: string; teaches?: boolean }[] }
  expect(listed.items.filter(({ teaches }) => teaches === true).map(({ id }) => id)).toEqual([(teaching.body as { id: string }).id])
})

test('an admin of some scopes creates no more keys than its scopes may have, and one of all scopes does', async () => {
  const key = await keyFor(['admin'], ['full/*'])
  const other = await keyFor(['admin'], ['roomy/*'])
  const json = { name: 'one', roles: ['publisher'], scopes: ['full/1'] }
  await env.DB.prepare(
    `INSERT INTO keys (id, name, roles, scopes, hash, created_at, teaches)
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9998)
      SELECT 'full-' || i, 'x', '["publisher"]', '["full/*"]', '', 0, 1 FROM n`,
  ).run()
  expect(await call('/v1/keys', { key, json })).toMatchObject({ status: 201 })
  expect(await call('/v1/keys', { key, json })).toMatchObject(problem(409, 'too-many-keys'))
  expect(await call('/v1/keys', { json })).toMatchObject({ status: 201 })
  expect(await call('/v1/keys', { key: other, json: { ...json, scopes: ['roomy/1'] } })).toMatchObject({ status: 201 })
  await env.DB.exec(`DELETE FROM keys WHERE id LIKE 'full-%'`)
})
