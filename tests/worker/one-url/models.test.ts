import { expect, test } from 'vitest'
import { call, callWith, keyFor } from '../../support/http.ts'

const failed = (status: number) => ({ status, type: 'application/json', body: { error: { message: expect.any(String) } } })

test('the models of OpenAI are the one that answers in the scope', async () => {
  const model = { id: 'offline', object: 'model', created: 0, owned_by: 'reflex' }
  expect(await call('/v1/openai/models')).toMatchObject({ status: 200, body: { object: 'list', data: [model] } })
  expect(await call('/v1/openai/models/offline')).toMatchObject({ status: 200, body: model })
  expect(await call('/v1/openai/models/gpt-5')).toMatchObject(failed(404))
})

test('a model whose name has a slash is found by its name, as clients encode it', async () => {
  const deployed = { REFLEX_MODEL: 'openai-compatible/gpt-5-mini' }
  const found = await callWith(deployed, '/v1/openai/models/openai-compatible%2Fgpt-5-mini')
  expect(found).toMatchObject({ status: 200, body: { id: 'openai-compatible/gpt-5-mini' } })
})

test.each(['/v1/anthropic/models', '/v1/anthropic/v1/models'])('the models of Anthropic are at %s', async (path) => {
  const model = { type: 'model', id: 'offline', display_name: 'offline', created_at: expect.any(String) }
  const page = { data: [model], has_more: false, first_id: 'offline', last_id: 'offline' }
  expect(await call(path)).toMatchObject({ status: 200, body: page })
  expect(await call(`${path}/offline`)).toMatchObject({ status: 200, body: model })
  expect(await call(`${path}/claude`)).toMatchObject(failed(404))
})

test('models are listed for a key that may ask, in a scope that it covers', async () => {
  const key = await keyFor(['publisher'], ['mine/*'], 'mine')
  expect(await call('/v1/openai/models', { key, headers: { 'x-reflex-scope': 'mine/one' } })).toMatchObject({ status: 200 })
  expect(await call('/v1/openai/models', { key })).toMatchObject(failed(403))
  expect(await call('/v1/openai/models', { key: await keyFor(['viewer']) })).toMatchObject(failed(403))
  expect(await call('/v1/openai/models', { key: 'nobody' })).toMatchObject(failed(401))
})
