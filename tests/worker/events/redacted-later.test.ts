import { env } from 'cloudflare:workers'
import { expect, test } from 'vitest'
import { replicateEvents } from '../../../src/store/replicate.ts'
import { call } from '../../support/http.ts'
import { eventAt, reportOf, scopeRow } from '../../support/packs.ts'
import { freshScope, sendAndSettle, note, stubOf, until } from '../../support/scopes.ts'

const LATER = Date.now() - 3_600_000

test('a field that a scope hides later is masked in what D1 has of it: packs, rows, look-ups and replays', async () => {
  const [scope, other] = [freshScope(), freshScope()]
  const events = [scope, other].flatMap((name) => [0, 1].map((nth) => eventAt(name, LATER + nth, { email: 'jo@example.com' })))
  for (const [nth, event] of events.entries()) {
    // The first event of a scope is packed, and the second is a row.
    const report = reportOf(event, { nth: nth % 2 === 0 ? nth + 1 : null })
    await replicateEvents(env.DB, [report], scopeRow(event.scope), { least_packed: 1 })
  }
  const shown = async (name: string): Promise<string[]> => {
    const list = await call(`/v1/events?scope=${encodeURIComponent(name)}`)
    const found = await Promise.all(events.filter((event) => event.scope === name).map(({ id }) => call(`/v1/events/${id}`)))
    const replay = await call(`/v1/events/replay?scope=${encodeURIComponent(name)}`)
    return [...(list.body as { items: object[] }).items, ...found.map(({ body }) => body as object)]
      .map((one) => JSON.stringify(one))
      .concat(replay.text)
  }
  expect((await shown(scope)).every((text) => text.includes('jo@example.com'))).toBe(true)
  await sendAndSettle(stubOf(scope), note(scope, 'first'))
  await stubOf(scope).configure({ redact: ['Email'] }, 'ops')
  await until(async () => !(await shown(scope)).some((text) => text.includes('jo@example.com')), 'the fields to be hidden')
  expect(await shown(scope)).toHaveLength(6)
  expect((await shown(other)).every((text) => text.includes('jo@example.com'))).toBe(true)
  await stubOf(scope).configure({ redact: [] }, 'ops')
  await until(async () => (await shown(scope)).filter((text) => text.includes('jo@example.com')).length === 5, 'the fields to be shown')
})

test.each(['scope', 'queue'])('a dead letter of the %s hides what its scope hides now', async (origin) => {
  const [scope, other] = [freshScope(), freshScope()]
  const sql = `INSERT INTO dead_letters (id, origin, scope, event_id, type, payload, error, attempts, dead_lettered_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
  const letters = [scope, other].map((name) => {
    const event = eventAt(name, LATER, { email: 'jo@example.com', note: 'plain' })
    return { id: event.id, event }
  })
  for (const { id, event } of letters)
    await env.DB.prepare(sql).bind(id, origin, event.scope, event.id, event.type, JSON.stringify(event), 'it failed', 1, LATER).run()
  const shown = async (name: string): Promise<string> => {
    const { text } = await call(`/v1/dlq?scope=${encodeURIComponent(name)}`)
    const found = letters.filter(({ event }) => event.scope === name).map(({ id }) => call(`/v1/dlq/${encodeURIComponent(id)}`))
    return [text, ...(await Promise.all(found)).map((one) => one.text)].join('\n')
  }
  expect((await shown(scope)).match(/jo@example.com/g)).toHaveLength(2)
  await sendAndSettle(stubOf(scope), note(scope, 'first'))
  await stubOf(scope).configure({ redact: ['email'] }, 'ops')
  await until(async () => !(await shown(scope)).includes('jo@example.com'), 'the field to be hidden')
  expect((await shown(scope)).match(/plain/g)).toHaveLength(2)
  expect((await shown(other)).match(/jo@example.com/g)).toHaveLength(2)
})
