import { expect, test } from 'vitest'
import { call, callWith, keyFor } from '../../support/http.ts'
import { outside } from '../../support/mock-fetch.ts'

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

const listed = (id: string, created: number) => ({ id, object: 'model', created, owned_by: 'a provider' })
const passing = { REFLEX_PROVIDER_KEYS: 'pass', OPENAI_COMPATIBLE_BASE_URL: 'https://provider.test/v1/' }
const headers = { 'x-reflex-provider-key': 'sk-of-the-caller' }

test("a caller's own key lists what the provider lists for it, where the deployment passes such keys on", async () => {
  const models = [listed('large', 1_700_000_000), listed('small', 0)]
  const provider = outside('provider.test', () => Response.json({ object: 'list', data: models }))
  expect(await callWith(passing, '/v1/openai/models', { headers })).toMatchObject({ status: 200, body: { object: 'list', data: models } })
  expect(await callWith(passing, '/v1/openai/models/small', { headers })).toMatchObject({ status: 200, body: models[1] })
  expect(await callWith(passing, '/v1/openai/models/tiny', { headers })).toMatchObject(failed(404))
  const page = { data: [{ id: 'large', created_at: '2023-11-14T22:13:20.000Z' }, { id: 'small' }], first_id: 'large', last_id: 'small' }
  expect(await callWith(passing, '/v1/anthropic/models', { headers })).toMatchObject({ status: 200, body: page })
  expect(provider.requests).toHaveLength(4)
  for (const { url, headers: sent } of provider.requests) {
    expect(url).toBe('https://provider.test/v1/models')
    expect(sent.get('authorization')).toBe('Bearer sk-of-the-caller')
  }
  expect(await call('/v1/openai/models', { headers })).toMatchObject(failed(403))
  expect(provider.requests).toHaveLength(4)
  provider.restore()
})

test.each([
  [401, () => new Response('who is sk-of-the-caller?', { status: 401 })],
  [502, () => new Response(null, { status: 302, headers: { location: 'https://elsewhere.test' } })],
  [502, () => Response.json({ data: 'none' })],
  [502, () => Promise.reject(new Error('sk-of-the-caller is not taken'))],
])('a provider that gives no list is the error %i, which repeats nothing that it said', async (status, answer) => {
  const provider = outside('provider.test', answer)
  const answered = await callWith(passing, '/v1/openai/models', { headers })
  expect(answered).toMatchObject(failed(status))
  expect(answered.text).not.toContain('sk-of-the-caller')
  provider.restore()
})
