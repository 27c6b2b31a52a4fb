import { env } from 'cloudflare:workers'
import { expect, test, vi } from 'vitest'
import { continueJobs } from '../../../src/features/dead-letters/http.ts'
import { findJob, forgetJobs, insertJob, openJobs } from '../../../src/features/dead-letters/store.ts'
import { storeOf } from '../../../src/store/store.ts'
import { call, keyFor, problem } from '../../support/http.ts'
import { freshScope } from '../../support/scopes.ts'

type Letter = { scope: string; error: string; type?: string | null; at?: number }

/** Letters of the queue, whose events their scope has never received. */
async function bury(letters: readonly Letter[]): Promise<void> {
  const insert = env.DB.prepare(
    `INSERT INTO dead_letters (id, origin, scope, event_id, type, error, attempts, payload, dead_lettered_at)
      VALUES (?1, 'queue', ?2, ?1, ?3, ?4, 5, ?5, ?6)`,
  )
  const rows = letters.map(({ scope, error, type = 'ws.message', at = Date.now() - 1000 }) => {
    const id = crypto.randomUUID()
    const meta = { trace_id: id.replaceAll('-', '') }
    const event = { id, scope, type, source: 'test', timestamp: new Date(at).toISOString(), connection_id: 'c', content: 'hi', meta }
    return insert.bind(id, scope, type, error, JSON.stringify(event), at)
  })
  await env.DB.batch(rows)
}

const lettersOf = async (query: Record<string, string>) =>
  (await call(`/v1/dlq?${new URLSearchParams(query).toString()}`)).body.items as { id: string; error: string }[]
const start = (json: object, key?: string) => call('/v1/dlq/jobs', { method: 'POST', json, ...(key !== undefined && { key }) })
const ended = async (id: string) =>
  vi.waitFor(async () => {
    const { body } = await call(`/v1/dlq/jobs/${id}`)
    expect(body.ended_at).not.toBeNull()
    return body as { total: number; done: number; failed: number; gone: number; error: string | null }
  }, 20_000)

test('letters are grouped by the first line of their errors without its numbers, and found by it', async () => {
  const scope = freshScope()
  await bury([
    { scope, error: 'no answer within 1200 ms\nat line 3' },
    { scope, error: 'no answer within 30000 ms' },
    { scope, error: 'no answer within 5 ms', type: 'other' },
    { scope, error: 'division by zero' },
  ])
  const { body } = await call(`/v1/dlq/groups?scope=${encodeURIComponent(scope)}`)
  expect(body.items.map(({ error, type, letters, scopes }: Record<string, unknown>) => ({ error, type, letters, scopes }))).toEqual([
    { error: 'no answer within # ms', type: 'ws.message', letters: 2, scopes: 1 },
    { error: 'division by zero', type: 'ws.message', letters: 1, scopes: 1 },
    { error: 'no answer within # ms', type: 'other', letters: 1, scopes: 1 },
  ])
  const found = await lettersOf({ scope, error: 'no answer within # ms', type: 'ws.message' })
  expect(found.map(({ error }) => error).toSorted()).toEqual(['no answer within 1200 ms\nat line 3', 'no answer within 30000 ms'])
  const stranger = await keyFor(['operator'], [freshScope()])
  expect((await call(`/v1/dlq/groups?scope=${encodeURIComponent(scope)}`, { key: stranger })).body.items).toEqual([])
})

test('a job retries a group whole, more than a page of it, and says how far it is', async () => {
  const scope = freshScope()
  await bury([...Array.from({ length: 130 }, (_, index) => ({ scope, error: `lost after ${index} tries` })), { scope, error: 'another' }])
  const { status, body } = await start({ verb: 'retry', scope, error: 'lost after # tries' })
  expect(status).toBe(202)
  expect(body).toMatchObject({ verb: 'retry', by: 'admin', total: 130, ended_at: null })
  expect(await ended(body.id)).toMatchObject({ total: 130, done: 130, failed: 0, error: null })
  expect((await lettersOf({ scope })).map(({ error }) => error)).toEqual(['another'])
  const { body: state } = await call(`/v1/scopes/${encodeURIComponent(scope)}`)
  expect(state.counters.accepted).toBe(130)
})

test('a job discards the letters that it names, within the scopes of its key', async () => {
  const [mine, other] = [freshScope(), freshScope()]
  await bury([
    { scope: mine, error: 'one' },
    { scope: mine, error: 'two' },
    { scope: other, error: 'one' },
  ])
  const key = await keyFor(['operator'], [mine])
  const ids = [...(await lettersOf({ scope: mine, error: 'one' })), ...(await lettersOf({ scope: other }))].map(({ id }) => id)
  const { body } = await start({ verb: 'discard', ids }, key)
  expect(body.total).toBe(1)
  expect(await ended(body.id)).toMatchObject({ done: 1 })
  expect(await lettersOf({ scope: mine })).toHaveLength(1)
  expect(await lettersOf({ scope: other })).toHaveLength(1)
  expect(await call(`/v1/dlq/jobs/${body.id}`, { key: await keyFor(['operator'], [mine]) })).toMatchObject(problem(404))
})

test('a job ends with its key, and the letters that are left stay', async () => {
  const scope = freshScope()
  await bury(Array.from({ length: 3 }, () => ({ scope, error: 'left' })))
  const key = await keyFor(['operator'], [scope])
  const { key_id } = (await call('/v1/key', { key })).body as { key_id: string }
  const now = Date.now()
  const head = { id: crypto.randomUUID(), verb: 'discard' as const, which: { scope }, patterns: [scope], key_id, by: 'ann' }
  await insertJob(storeOf(env), { ...head, started_at: now, before: { at: now + 1, id: '' }, total: 6, done: 1 })
  expect((await call(`/v1/keys/${key_id}`, { method: 'DELETE' })).status).toBe(204)
  await continueJobs(env, now, [])
  expect(await ended(head.id)).toMatchObject({
    total: 6,
    done: 1,
    failed: 3,
    gone: 2,
    error: expect.stringContaining('The key that started'),
  })
  expect(await lettersOf({ scope })).toHaveLength(3)
})

test('a job whose key ends counts no letter that came after it began', async () => {
  const scope = freshScope()
  await bury([{ scope, error: 'later' }])
  const key = await keyFor(['operator'], [scope])
  const { key_id } = (await call('/v1/key', { key })).body as { key_id: string }
  const now = Date.now()
  const head = { id: crypto.randomUUID(), verb: 'discard' as const, which: { scope }, patterns: [scope], key_id, by: 'ann' }
  await insertJob(storeOf(env), { ...head, started_at: now, before: { at: now + 1, id: '' }, total: 1, done: 2 })
  expect((await call(`/v1/keys/${key_id}`, { method: 'DELETE' })).status).toBe(204)
  await continueJobs(env, now, [])
  expect(await ended(head.id)).toMatchObject({ total: 1, done: 2, failed: 0 })
})

test('the sweep continues a job that a request left, and its letters that came later stay', async () => {
  const scope = freshScope()
  const now = Date.now()
  await bury([
    { scope, error: 'old', at: now - 2000 },
    { scope, error: 'new', at: now + 2000 },
  ])
  const db = storeOf(env)
  const head = { id: crypto.randomUUID(), verb: 'discard' as const, which: { scope }, patterns: ['*'], key_id: 'admin', by: 'ann' }
  const job = { ...head, started_at: now, before: { at: now + 1, id: '' }, total: 1 }
  await insertJob(db, { ...job, leased_until: now + 60_000 })
  // Somebody runs it.
  await continueJobs(env, now, [])
  expect((await findJob(db, job.id))?.ended_at).toBeNull()
  await env.DB.prepare('UPDATE letter_jobs SET leased_until = 0 WHERE id = ?').bind(job.id).run()
  expect(await openJobs(db, now)).toContain(job.id)
  await continueJobs(env, now, [])
  expect(await findJob(db, job.id)).toMatchObject({ done: 1, failed: 0, ended_at: expect.any(Number) })
  expect((await lettersOf({ scope })).map(({ error }) => error)).toEqual(['new'])
  expect(await openJobs(db, Date.now())).not.toContain(job.id)
  await forgetJobs(db, now - 1000, 100)
  expect(await findJob(db, job.id)).toBeDefined()
  await forgetJobs(db, Date.now() + 1000, 1000)
  expect(await findJob(db, job.id)).toBeUndefined()
})

test('a job continues whose lease a clock has written that was ahead', async () => {
  const scope = freshScope()
  const now = Date.now()
  await bury([{ scope, error: 'left' }])
  const head = { id: crypto.randomUUID(), verb: 'discard' as const, which: { scope }, patterns: [scope], key_id: 'admin', by: 'ann' }
  const ahead = { started_at: now + 86_400_000, leased_until: now + 86_400_000 }
  await insertJob(storeOf(env), { ...head, ...ahead, before: { at: now + 86_400_001, id: '' }, total: 1 })
  await continueJobs(env, now, [])
  expect(await ended(head.id)).toMatchObject({ total: 1, done: 1 })
})

test('a job counts the letters that another one took before it came to them', async () => {
  const scope = freshScope()
  const now = Date.now()
  await bury([
    { scope, error: 'taken' },
    { scope, error: 'left' },
    { scope, error: 'of a clock ahead', at: now + 60_000 },
  ])
  const { body: first } = await start({ verb: 'discard', scope, error: 'taken' })
  expect(await ended(first.id)).toMatchObject({ total: 1, done: 1, gone: 0 })
  const head = { id: crypto.randomUUID(), verb: 'retry' as const, which: { scope }, patterns: [scope], key_id: 'admin', by: 'ann' }
  await insertJob(storeOf(env), { ...head, started_at: now, before: { at: now + 1, id: '' }, total: 2 })
  expect((await call(`/v1/dlq/jobs/${head.id}`)).body).toMatchObject({ ended_at: null, gone: 0 })
  await continueJobs(env, now, [])
  expect(await ended(head.id)).toMatchObject({ total: 2, done: 1, failed: 0, gone: 1 })
  const { body: last } = await start({ verb: 'discard', scope })
  expect(await ended(last.id)).toMatchObject({ total: 0, done: 0, gone: 0 })
})

test('each letter counts in one of the jobs that run at the same time', async () => {
  const scope = freshScope()
  await bury(Array.from({ length: 250 }, () => ({ scope, error: 'wanted twice' })))
  const jobs = await Promise.all([start({ verb: 'retry', scope }), start({ verb: 'retry', scope })])
  const ends = await Promise.all(jobs.map(({ body }) => ended(body.id as string)))
  expect(ends.map(({ total, done, gone }) => done + gone - total)).toEqual([0, 0])
  expect(ends.reduce((sum, { done }) => sum + done, 0)).toBe(250)
})

test('the jobs of a key keep those of another from no sweep, and a key has twenty of them at most', async () => {
  const [busy, other] = [freshScope(), freshScope()]
  const now = Date.now()
  await bury([
    { scope: busy, error: 'many' },
    { scope: other, error: 'one' },
  ])
  const db = storeOf(env)
  const key = await keyFor(['operator'], [busy])
  const { body: own } = await call('/v1/key', { key })
  const jobOf = (scope: string, key_id: string, started_at: number) => {
    const head = { id: crypto.randomUUID(), verb: 'discard' as const, which: { scope }, patterns: [scope], key_id, by: 'ann' }
    return insertJob(db, { ...head, started_at, before: { at: now + 1, id: '' }, total: 1 })
  }
  for (let age = 25; age > 0; age -= 1) await jobOf(busy, own.key_id as string, now - 1000 * age)
  const { body: another } = await call('/v1/key', { key: await keyFor(['operator'], [other]) })
  const late = await jobOf(other, another.key_id as string, now)
  expect((await start({ verb: 'discard', scope: busy }, key)).body).toMatchObject({ status: 409, type: 'urn:reflex:problem:too-many-jobs' })
  await continueJobs(env, now, [])
  expect(await findJob(db, late.id)).toMatchObject({ done: 1, ended_at: expect.any(Number) })
})

test('of the jobs of a key, the one whose last run is the longest ago is continued first', async () => {
  const db = storeOf(env)
  const now = Date.now()
  const jobOf = (id: string, key_id: string, leased_until: number) => {
    const head = { id, verb: 'discard' as const, which: {}, patterns: [freshScope()], key_id, by: 'ann' }
    return insertJob(db, { ...head, started_at: now, before: { at: now, id: '' }, total: 0, leased_until })
  }
  const names = ['ran', 'waits', 'runs', 'of-another'].map((name) => `${name}-${crypto.randomUUID()}`)
  const [ran = '', waits = '', runs = '', another = ''] = names
  await jobOf(ran, `key-of-${ran}`, now - 1)
  await jobOf(waits, `key-of-${ran}`, now - 5000)
  await jobOf(runs, `key-of-${ran}`, now + 1000)
  await jobOf(another, `key-of-${another}`, now - 1)
  expect((await openJobs(db, now)).filter((id) => names.includes(id))).toEqual([waits, another, ran])
})
