import { env } from 'cloudflare:workers'
import { expect, test, vi } from 'vitest'
import { call, callWith, keyFor, message, scopePath } from '../../support/http.ts'
import { freshScope } from '../../support/scopes.ts'
import { forgetActions, insertAction } from '../../../src/features/audit/store.ts'
import type { Change } from '../../../src/contract/change.ts'
import { storeOf } from '../../../src/store/store.ts'

type Shown = { key_name: string; action: string; scope: string | null; target: string | null; nth: number; [field: string]: unknown }

const named = (name: string): string => `${name}-${crypto.randomUUID()}`

async function actionsOf(query: Record<string, string>, key?: string): Promise<Shown[]> {
  const { status, body } = await call(`/v1/audit?${new URLSearchParams(query).toString()}`, key === undefined ? {} : { key })
  expect(status).toBe(200)
  return body.items
}

const timer = (scope: string, name: string) => scopePath(scope, `/timers/${name}`)
const every_hour = { every_s: 3600 }

test('a change is recorded once, with who made it, when and on what', async () => {
  const scope = freshScope()
  const name = named('ann')
  const key = await keyFor(['operator'], [scope], name)
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const put = await call(timer(scope, 'poll'), { method: 'PUT', key, json: every_hour, headers: { traceparent } })
  expect(put.status).toBe(201)
  const [action, ...others] = await actionsOf({ key: name })
  expect(others).toEqual([])
  expect(action).toEqual({
    id: expect.any(String),
    at: expect.any(String),
    key_id: expect.stringMatching(/^[0-9a-f]{16}$/),
    key_name: name,
    role: 'operator',
    action: 'putTimer',
    method: 'PUT',
    scope,
    target: 'poll',
    trace_id: '0af7651916cd43dd8448eb211c80319c',
    nth: 1,
  })
})

test('what a request contained is in no record, nor is what it was answered', async () => {
  const name = named('made')
  const { body } = await call('/v1/keys', { json: { name, roles: ['viewer'], scopes: [`${name}/*`] } })
  const [action] = await actionsOf({ action: 'createKey' })
  expect(action).toMatchObject({ key_name: 'admin', scope: null, target: body.id })
  expect(JSON.stringify(action)).not.toContain(body.key)
  const { results } = await env.DB.prepare('SELECT * FROM actions').all()
  expect(JSON.stringify(results)).not.toContain(body.key)
})

test('reading, sending events and what is refused is no action', async () => {
  const scope = freshScope()
  const name = named('reader')
  const key = await keyFor(['operator'], [scope], name)
  expect((await call(scopePath(scope, '/events'), { key, json: message() })).status).toBe(202)
  expect((await call('/v1/scopes', { key })).status).toBe(200)
  expect((await call(timer(scope, 'none'), { method: 'DELETE', key })).status).toBe(404)
  expect((await call(timer(scope, 'poll'), { method: 'PUT', key, json: { every_s: 0 } })).status).toBe(400)
  expect((await call('/v1/keys', { key, json: { name: 'x', roles: ['viewer'], scopes: [scope] } })).status).toBe(403)
  expect(await actionsOf({ key: name })).toEqual([])
})

test('a key sees the changes of scopes that it covers, and none of others', async () => {
  const [mine, other] = [freshScope('team-a'), freshScope('team-b')]
  for (const scope of [mine, other]) await call(timer(scope, 'poll'), { method: 'PUT', json: every_hour })
  const key = await keyFor(['operator'], [mine])
  expect((await actionsOf({ scope: mine }, key)).map(({ target }) => target)).toEqual(['poll'])
  expect(await actionsOf({ scope: other }, key)).toEqual([])
  expect((await actionsOf({}, key)).every(({ scope }) => scope === mine)).toBe(true)
})

test('a change of no one scope is seen by who covers all scopes of the key that made it', async () => {
  const team = named('team')
  const name = named('lead')
  const lead = await keyFor(['admin'], [`${team}/*`], name)
  await call('/v1/keys', { key: lead, json: { name: 'member', roles: ['viewer'], scopes: [`${team}/x`] } })
  const peer = await keyFor(['operator'], [`${team}/*`])
  const part = await keyFor(['operator'], [`${team}/x`])
  expect((await actionsOf({ key: name }, peer)).map(({ action }) => action)).toEqual(['createKey'])
  expect(await actionsOf({ key: name }, part)).toEqual([])
  expect(await actionsOf({ key: 'admin' }, peer)).toEqual([])
})

test.each([['viewer'], ['publisher']])('a %s reads no actions', async (role) => {
  expect((await call('/v1/audit', { key: await keyFor([role]) })).status).toBe(403)
})

test('is filtered by scope pattern, key, action and time, and has pages', async () => {
  const team = named('shop')
  const name = named('eve')
  const key = await keyFor(['operator'], [`${team}/*`], name)
  const scopes = ['a', 'b', 'c'].map((part) => `${team}/${part}`)
  for (const scope of scopes) await call(timer(scope, 'poll'), { method: 'PUT', key, json: every_hour })
  await call(timer(`${team}/c`, 'poll'), { method: 'DELETE', key })
  const first = await call(`/v1/audit?scope=${team}/*&limit=3`)
  expect(first.body.items).toHaveLength(3)
  const rest = await call(`/v1/audit?scope=${team}/*&limit=3&cursor=${encodeURIComponent(first.body.next_cursor)}`)
  expect(rest.body.next_cursor).toBeNull()
  const all = [...first.body.items, ...rest.body.items] as Shown[]
  expect(all.map(({ nth }) => nth).toSorted((one, other) => one - other)).toEqual([1, 2, 3, 4])
  expect((await actionsOf({ scope: `${team}/b` })).map(({ scope }) => scope)).toEqual([`${team}/b`])
  expect((await actionsOf({ key: name, action: 'deleteTimer' })).map(({ scope }) => scope)).toEqual([`${team}/c`])
  expect(await actionsOf({ key: name, until: '2020-01-01T00:00:00Z' })).toEqual([])
  expect(await actionsOf({ key: name, since: '2020-01-01T00:00:00Z' })).toHaveLength(4)
})

test('a change is answered although its record fails, and the log of the Worker has it', async () => {
  const scope = freshScope()
  const warned = vi.spyOn(console, 'warn').mockImplementation(() => {})
  const failing = { prepare: () => ({ bind: () => ({}) }), batch: () => Promise.reject(new Error('D1_ERROR: away')) }
  const put = await callWith({ DB: failing }, timer(scope, 'poll'), { method: 'PUT', json: every_hour })
  expect(put.status).toBe(201)
  const line = warned.mock.calls.map(([text]) => String(text)).find((text) => text.includes('could not be recorded'))
  expect(JSON.parse(line ?? '{}')).toMatchObject({ action: 'putTimer', scope, target: 'poll', error: 'D1_ERROR: away' })
  warned.mockRestore()
})

const change = (key_id: string, at: number): Change & { id: string } => ({
  id: crypto.randomUUID(),
  at,
  key_id,
  key_name: key_id,
  role: 'admin',
  action: 'deleteKey',
  method: 'DELETE',
  scope: null,
  reach: ['*'],
  target: null,
  trace_id: null,
})

test('a record that is written again is there once', async () => {
  const db = storeOf(env)
  const one = change(named('key'), 1)
  await insertAction(db, one)
  await insertAction(db, one)
  expect(await actionsOf({ key: one.key_id })).toHaveLength(1)
})

test('the oldest of a key leave where it has made too many, and others keep theirs', async () => {
  const db = storeOf(env)
  const [busy, quiet] = [named('busy'), named('quiet')]
  await insertAction(db, change(quiet, 1))
  await insertAction(db, change(busy, 1))
  await db.prepare('UPDATE actions SET nth = nth + 9998 WHERE key_id = ?').bind(busy).run()
  await insertAction(db, change(busy, 2))
  expect((await actionsOf({ key: busy })).map(({ nth }) => nth)).toEqual([10_000, 9999])
  await db.prepare('UPDATE actions SET nth = 1 WHERE key_id = ? AND nth = 9999').bind(busy).run()
  await insertAction(db, change(busy, 3))
  expect((await actionsOf({ key: busy })).map(({ nth }) => nth)).toEqual([10_001, 10_000])
  expect(await actionsOf({ key: quiet })).toHaveLength(1)
})

test('actions are forgotten by age, in bounded portions', async () => {
  const db = storeOf(env)
  const key = named('old')
  for (const at of [1, 2, 3]) await insertAction(db, change(key, at))
  await env.DB.prepare('DELETE FROM actions WHERE key_id <> ?').bind(key).run()
  expect(await forgetActions(db, 3, 1)).toBe(1)
  expect(await forgetActions(db, 3, 10)).toBe(1)
  expect((await actionsOf({ key })).map(({ at }) => at)).toEqual(['1970-01-01T00:00:00.003Z'])
})
