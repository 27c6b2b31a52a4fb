import { env } from 'cloudflare:workers'
import { D1Store } from 'reflex-agents/core/d1'
import { expect, test } from 'vitest'
import { startApp, type Known } from '../../../examples/core/app.ts'

test('the app of the library answers an event with its id, a message with its ack, and its loop acts on both', async () => {
  const store = await D1Store.open<Known>(env.DB, { table: 'app_events', poll_ms: 20 })
  const stop = new AbortController()
  const acted: string[][] = []
  const { app, ended } = startApp({
    store,
    signal: stop.signal,
    async trigger(context) {
      if (context.events.length < 2) return null
      acted.push(context.events.map(({ id }) => id))
      return { alerted: true }
    },
  })
  const post = (body: object) => app.request('/events', { method: 'POST', body: JSON.stringify(body) })
  const posted = await post({ type: 'http.request', method: 'GET', path: '/', body: { said: 'an error' } })
  const { id } = await posted.json<{ id: string }>()
  expect({ status: posted.status, id }).toEqual({ status: 200, id: expect.stringMatching(/^[0-9a-f-]{36}$/) })
  expect((await post({ type: 'http.request', method: 7 })).status).toBe(400)

  const { webSocket: socket } = await app.request('/ws/ann', { headers: { Upgrade: 'websocket' } })
  if (!socket) throw new Error('the app opened no socket')
  socket.accept()
  const answer = new Promise<string>((resolve) => socket.addEventListener('message', ({ data }) => resolve(String(data))))
  socket.send(JSON.stringify({ content: 'ALERT: the disk is full' }))
  const { ack } = JSON.parse(await answer) as { ack: string }
  expect(ack).toMatch(/^[0-9a-f-]{36}$/)

  await expect.poll(() => acted, { timeout: 20_000 }).toEqual([[id, ack]])
  stop.abort()
  await ended
  socket.close()
})
