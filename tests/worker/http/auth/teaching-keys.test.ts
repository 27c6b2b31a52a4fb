import { env } from 'cloudflare:workers'
import { expect, test } from 'vitest'
import { teachingKeys } from '../../../../src/store/access/keys.ts'
import { call } from '../../../support/http.ts'

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
