import { exports } from 'cloudflare:workers'
import { expect, test } from 'vitest'

const call = (path: string, init: RequestInit = {}, key = 'test-admin-key') =>
  exports.default.fetch(new Request(`https://reflex.test${path}`, { ...init, headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...(init.headers as Record<string,string>) } }))
const show = async (r: Response) => console.log(r.status, (await r.text()).slice(0, 600))
test('smoke', async () => {
  await show(await call('/health'))
  await show(await call('/v1/events', { method: 'POST', body: JSON.stringify([{ id: 'a', type: 'ws.message', connection_id: 'c', content: 'x' }, { id: 'a', type: 'ws.message', connection_id: 'c', content: 'x' }]) }))
  await show(await call('/v1/events'))
  await show(await call('/v1/scopes/ssh%2Flabsz/events?wait=outcome', { method: 'POST', body: JSON.stringify([{ id: 'a', type: 'ws.message', connection_id: 'c', content: 'x' }]) }))
  await show(await call('/v1/scopes/ssh%2Flabsz/events/a'))
  await show(await call('/v1/scopes/ssh%2Flabsz/log?limit=2'))
  await show(await call('/v1/scopes/ssh%2Flabsz'))
  await show(await call('/v1/scopes/ssh%2Flabsz/context'))
  await show(await call('/v1/scopes/ssh%2Flabsz/cancel', {method: 'POST'}))
  await show(await call('/v1/scopes/ssh%2Flabsz', {method: 'PATCH', body: '{"max_attempts":0}'}))
  await show(await call('/v1/scopes/ssh%2Flabsz', {method: 'PATCH', body: '{"max_attempts":2}'}))
  await show(await call('/v1/scopes/ssh%2Flabsz/tickets', {method: 'POST'}))
  await show(await call('/v1/events/replay'))
  await show(await call('/v1/keys', {method: 'POST', body: '{"name":"a","roles":["viewer"],"scopes":["*"]}'}))
  await show(await call('/v1/keys'))
  await show(await call('/v1/scopes?limit=0'))
  const ws = await call('/v1/scopes/ssh%2Flabsz/ws?after=0', { headers: { Upgrade: 'websocket' } })
  console.log(ws.status, !!ws.webSocket)
  ws.webSocket?.accept()
  ws.webSocket?.close()
})
