import { env } from 'cloudflare:workers'
import { describe, expect, test, vi } from 'vitest'
import type { Event } from '../../../src/core/event.ts'
import { limits } from '../../../src/base/limits.ts'
import { replicateEvents } from '../../../src/store/replicate.ts'
import { listApprovals } from '../../../src/features/approvals/store/approvals.ts'
import { addDeadLetters, deadLettersOf, listDeadLetters } from '../../../src/store/dead-letters.ts'
import { call, callWith, fetchRaw, problem, scopePath } from '../../support/http.ts'
import { entriesOf, evict, freshScope, hurry, note, send, sendAndSettle, stubOf } from '../../support/scopes.ts'
import { behaviours } from '../../support/test-agents.ts'

const LARGE = 90_000
/** The size of a page, and of one event by which it may overflow. */
const A_PAGE = Math.ceil(limits.page_bytes / LARGE) + 1
const large = (scope: string, character = 'x') => note(scope, character.repeat(LARGE / new Blob([character]).size))
const many = (scope: string, count: number, character?: string): Event[] => Array.from({ length: count }, () => large(scope, character))

async function sendMany(scope: string, count: number, character?: string): Promise<string[]> {
  const ids: string[] = []
  for (let sent = 0; sent < count; sent += 10)
    ids.push(...(await send(stubOf(scope), ...many(scope, Math.min(10, count - sent), character))))
  return ids
}

const pulling = async () => {
  const scope = freshScope()
  const stub = stubOf(scope)
  await stub.configure({ consumer: 'pull', max_attempts: 2 }, 'test')
  const claim = async (claim_id?: string, limit = 1000) => {
    const claimed = await stubOf(scope).claim({ claim_id, limit, lease_s: 30 }, 'worker')
    if (!claimed.ok) throw new Error(claimed.detail)
    return claimed.deliveries
  }
  return { scope, stub, claim }
}

describe('a claim', () => {
  test.each(['x', '字'])('takes what fits one answer and leaves the rest pending: %s', async (character) => {
    const { scope, stub, claim } = await pulling()
    const ids = await sendMany(scope, 60, character)
    const first = await claim()
    expect(first.length).toBeGreaterThan(A_PAGE / 2)
    expect(first.length).toBeLessThanOrEqual(A_PAGE)
    expect((await stub.state()).inbox).toMatchObject({ processing: first.length, pending: 60 - first.length })
    const all = [...first, ...(await claim())]
    expect(all.map(({ event }) => event.id)).toEqual(ids)
    expect(all.every(({ attempts }) => attempts === 1)).toBe(true)
  })

  test('made again under its id gets what it had, also after eviction, and no attempt counts', async () => {
    const { scope, stub, claim } = await pulling()
    await send(stub, note(scope, 'a'), note(scope, 'b'), note(scope, 'c'))
    const lost = await claim('one', 2)
    await evict(stub)
    expect(await claim('one', 2)).toEqual(lost)
    expect((await claim('other')).map(({ event }) => event)).toMatchObject([{ text: 'c' }])
    await stub.ack([lost[0]!.ack_token])
    expect(await claim('one', 2)).toEqual([lost[1]])
  })

  test('that is given back was never made: no attempt counts and its tokens are stale', async () => {
    const { scope, stub, claim } = await pulling()
    const [id] = await send(stub, note(scope, 'a'))
    for (const round of [1, 2, 3, 4]) {
      const [delivery] = await claim(`claim-${round}`)
      expect(delivery).toMatchObject({ attempts: 1, event: { id } })
      expect(await stub.giveBack(`claim-${round}`, 'its answer was lost')).toBe(1)
      expect(await stub.ack([delivery!.ack_token])).toMatchObject({ acked: [] })
    }
    expect(await entriesOf(stub, 'event-returned')).toHaveLength(4)
    await evict(stub)
    expect(await claim()).toMatchObject([{ attempts: 1 }])
  })

  test('takes nothing back that another claim holds, nor a turn', async () => {
    const { scope, stub, claim } = await pulling()
    await send(stub, note(scope, 'a'), note(scope, 'b'))
    await claim('one', 1)
    const [other] = await claim('one1', 1)
    expect(await stub.giveBack('one', 'lost')).toBe(1)
    expect(await stub.ack([other!.ack_token])).toMatchObject({ stale: [] })
  })

  test('whose consumer died is another matter: its lease ends and the attempt counts', async () => {
    const { scope, stub, claim } = await pulling()
    await send(stub, note(scope, 'a'))
    await claim('one')
    await hurry(stub)
    await hurry(stub)
    expect(await claim('one')).toMatchObject([{ attempts: 2 }])
  })

  test('that the scope does not answer is given back by the route', async () => {
    const { scope, stub, claim } = await pulling()
    await send(stub, note(scope, 'a'))
    const lossy = {
      claim: async (...request: Parameters<typeof stub.claim>) => {
        await stub.claim(...request)
        throw new Error('Serialized RPC arguments or return values are limited to 32MiB')
      },
      giveBack: (...given: Parameters<typeof stub.giveBack>) => stub.giveBack(...given),
    }
    const SCOPE = { getByName: () => lossy }
    for (let round = 0; round < 4; round += 1)
      expect(await callWith({ SCOPE }, scopePath(scope, '/claim'), { json: {} })).toMatchObject(problem(500))
    expect(await claim()).toMatchObject([{ attempts: 1 }])
  })
})

describe('one answer holds about a page', () => {
  test('of outcomes: those beyond it come in short, and each is there', async () => {
    const scope = freshScope()
    behaviours.set(scope, async () => ({ text: 'y'.repeat(200_000) }))
    const stub = stubOf(scope)
    const events = Array.from({ length: 40 }, (_, index) => note(scope, `${index}`))
    await sendAndSettle(stub, ...events)
    const { body, text } = await call(scopePath(scope, '/events?wait=outcome'), { json: events })
    expect(body.events.map(({ id }: Event) => id)).toEqual(events.map(({ id }) => id))
    expect(text.length).toBeLessThan(limits.page_bytes * 1.1)
    const [first, last] = [body.events[0], body.events.at(-1)]
    expect(first.outcome.result.text).toHaveLength(200_000)
    expect(last).toMatchObject({ status: 'completed', shortened: true, outcome: { by: 'turn', turn_id: expect.any(String) } })
    expect(last.outcome.result).toBeUndefined()
    const whole = await call(scopePath(scope, `/events/${last.id}`))
    expect(whole.body.outcome.result.text).toHaveLength(200_000)
  })

  test('of outcomes of large events, for these are not in it', async () => {
    const { scope, stub, claim } = await pulling()
    const ids = await sendMany(scope, 50)
    for (let taken = await claim(); taken.length > 0; taken = await claim()) await stub.ack(taken.map(({ ack_token }) => ack_token))
    const json = ids.map((id) => ({ id, type: 'test.note', text: 'the same id again' }))
    const { status, text, body } = await call(scopePath(scope, '/events?wait=outcome'), { json })
    expect({ status, accepted: body.accepted, events: body.events.length }).toEqual({ status: 200, accepted: 0, events: 50 })
    expect(text.length).toBeLessThan(50_000)
  })

  test('of the context, newest first; its cursor leads to the rest', async () => {
    const scope = freshScope()
    await stubOf(scope).configure({ agent: 'prompted' }, 'test')
    const ids = await sendMany(scope, 60)
    const seen: string[] = []
    for (let cursor: string | null = ''; cursor !== null;) {
      const { body, text } = await call(scopePath(scope, `/context${cursor && `?cursor=${cursor}`}`))
      expect(text.length).toBeLessThan(limits.page_bytes * 1.1)
      expect(body.count).toBe(60)
      seen.unshift(...body.events.map(({ id }: Event) => id))
      cursor = body.next_cursor
    }
    expect(seen).toEqual(ids)
  })

  test('of recordings that are rebuilt: cut to what a reflex is shown, and the page is short', async () => {
    const scope = freshScope()
    const ids = await sendMany(scope, 40)
    const seen: unknown[] = []
    let pages = 0
    for (let after: number | null = 0; after !== null;) {
      const page: { recordings: string[]; next: number | null } = await stubOf(scope).recordings({ since: 0, after, limit: 100 })
      expect(page.recordings.join('').length).toBeLessThan(1_200_000)
      seen.push(...page.recordings.map((text) => JSON.parse(text).event_id as unknown))
      after = page.next
      pages += 1
    }
    expect(seen).toEqual(ids)
    expect(pages).toBeGreaterThan(2)
  })

  test('of recordings: small events stand beside a large one as far as they fit', async () => {
    const scope = freshScope()
    await send(stubOf(scope), note(scope, 'old'), note(scope, 'x'.repeat(40_000)), note(scope, 'new'))
    const { recordings } = await stubOf(scope).recordings({ since: 0, after: 0, limit: 10 })
    const contexts = recordings.map((text) => JSON.parse(text).context as { recent_events: { text: string }[] })
    expect(contexts.map(({ recent_events }) => recent_events.length)).toEqual([1, 0, 3])
  })
})

const REFLEXES = `INSERT INTO artifact_versions
  SELECT 'reflex', value, '1', '0000001', 'x', 'x', 'x', 'draft', NULL, 1, 0, '{"by":"x","scope":null,"template":null,"origin":null}', 1, 'org', 0, 0, '' FROM json_each(?1)`
const SKILLS = `INSERT INTO artifact_versions
  SELECT 'skill', value, '1.0.0', '1', '{}', 'x', '', 'draft', NULL, 1, 0, '{"by":"x","scope":null}', 1, 'project', 0, 0, '' FROM json_each(?1)`

async function logged(scope: string, events: readonly Event[]) {
  const now = Date.now()
  const state = {
    status: 'pending',
    attempts: 0,
    error: null,
    stack: null,
    accepted_at: now,
    ended_at: null,
    revision: 1,
    discarded: false,
    agent: 'x',
    log_from: 1,
    kinds: 0,
    skills: '',
  }
  const reports = events.map((event) => ({
    ...state,
    id: event.id,
    trace_id: event.meta.trace_id,
    parent_id: null,
    timestamp: event.timestamp,
    payload: JSON.stringify(event),
  }))
  await replicateEvents(env.DB, reports, {
    scope,
    agent: 'x',
    open: 0,
    wake_at: null,
    updated_at: now,
    parked: 0,
    spans_exported: 0,
    spans_dropped: 0,
  })
}

describe('a list of D1 is paged by bytes', () => {
  async function all(path: string): Promise<{ items: { id: string }[]; pages: number }> {
    const items: { id: string }[] = []
    let pages = 0
    for (let cursor: string | null = ''; cursor !== null; pages += 1) {
      const { body, text } = await call(`${path}${cursor && `&cursor=${cursor}`}`)
      expect(text.length).toBeLessThan(limits.page_bytes * 1.1)
      items.push(...body.items)
      cursor = body.next_cursor
    }
    return { items, pages }
  }

  test('events', async () => {
    const scope = freshScope()
    const events = many(scope, 100)
    await logged(scope, events)
    const { items, pages } = await all(`/v1/events?limit=1000&scope=${scope}`)
    expect(items.map(({ id }) => id)).toEqual(events.map(({ id }) => id).toReversed())
    expect(pages).toBeGreaterThan(2)
    const tens = await all(`/v1/events?limit=10&scope=${scope}`)
    expect(tens).toMatchObject({ pages: 10, items: { length: 100 } })
  })

  test('history, and no page of it loads more than that', async () => {
    const scope = freshScope()
    const events = many(scope, 100)
    await logged(scope, events)
    const { text } = await call(`/v1/events/replay?scope=${scope}`)
    const lines = text.trimEnd().split('\n')
    expect(new Set(lines.map((line) => JSON.parse(line).id as string))).toEqual(new Set(events.map(({ id }) => id)))
  })

  test('history breaks off once its key is deleted', async () => {
    const scope = freshScope()
    await logged(scope, many(scope, 100))
    const { id, key } = (await call('/v1/keys', { json: { name: 'thief', roles: ['viewer'], scopes: [scope] } })).body
    const { body } = await fetchRaw(`/v1/events/replay?scope=${scope}`, { key })
    const reader = body?.getReader()
    expect((await reader?.read())?.done).toBe(false)
    await call(`/v1/keys/${id}`, { method: 'DELETE' })
    const rest = async () => {
      while ((await reader?.read())?.done === false);
    }
    await expect(rest()).rejects.toThrow('the key of this answer was deleted or has expired')
  })

  test.each([
    ['reflexes', `INSERT INTO artifacts SELECT 'reflex', value, ?2, ?2, ?1, 1 FROM json_each(?3)`, REFLEXES],
    ['skills', `INSERT INTO artifacts SELECT 'skill', value, ?2, ?2, ?1, 1 FROM json_each(?3)`, SKILLS],
    [
      'keys',
      `INSERT INTO keys (id, name, roles, scopes, hash, created_at) SELECT value, ?2, '["viewer"]', ?1, 'x', 1 FROM json_each(?3)`,
      null,
    ],
  ])('%s, and each is listed once', async (what, insert, versions) => {
    const ids = Array.from({ length: A_PAGE + 5 }, () => crypto.randomUUID())
    const listed = JSON.stringify(ids)
    // No key may have so many patterns: only the list's own bound is of interest here.
    await env.DB.prepare(insert)
      .bind(JSON.stringify(['x'.repeat(LARGE)]), 'large', listed)
      .run()
    if (versions !== null) await env.DB.prepare(versions).bind(listed).run()
    const { items, pages } = await all(`/v1/${what}?limit=1000`)
    const seen = items.map(({ id }) => id)
    expect(seen.filter((id) => ids.includes(id)).toSorted()).toEqual(ids.toSorted())
    expect(new Set(seen).size).toBe(seen.length)
    expect(pages).toBeGreaterThan(1)
  })

  test('dead letters, which are also retried page by page', async () => {
    const scope = freshScope()
    const events = many(scope, 60)
    for (let from = 0; from < events.length; from += 10) {
      const some = events.slice(from, from + 10)
      await addDeadLetters(env.DB, deadLettersOf(some, { id: `m${from}`, attempts: 3, body: null }, 'gone'))
    }
    const { items, pages } = await all(`/v1/dlq?limit=1000&scope=${scope}`)
    expect({ letters: new Set(items.map(({ id }) => id)).size, pages }).toEqual({ letters: 60, pages: 2 })
    const sizes: number[] = []
    const stub = stubOf(scope)
    const spied = {
      reopen: (...given: Parameters<typeof stub.reopen>) => stub.reopen(...given),
      accept: vi.fn<typeof stub.accept>((given, via) => {
        sizes.push(JSON.stringify(given).length)
        return stub.accept(given, via)
      }),
    }
    const SCOPE = { getByName: () => spied }
    const { body } = await callWith({ SCOPE }, '/v1/dlq/retry', { json: { scope, limit: 1000 } })
    expect(body).toEqual({ retried: 60, failed: [] })
    expect(Math.max(...sizes)).toBeLessThan(limits.page_bytes * 1.1)
    expect((await stub.state()).counters.accepted).toBe(60)
  })
})

/** The indexes and scans of a D1 query, as SQLite plans it. */
async function planOf(query: (db: D1Database) => Promise<unknown>): Promise<string> {
  const plans: string[] = []
  const explain = async (sql: string, values: unknown[]) => {
    const { results } = await env.DB.prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .bind(...values)
      .all<{ detail: string }>()
    plans.push(...results.map(({ detail }) => detail))
  }
  const prepare = (sql: string) => {
    const bind = (...values: unknown[]) => ({
      raw: async () => (await explain(sql, values), []),
      all: async () => (await explain(sql, values), { results: [] }),
    })
    return { bind, ...bind() }
  }
  await query({ prepare } as unknown as D1Database)
  return plans.join('; ')
}

describe('a page of a filtered list', () => {
  const query = { patterns: ['*'], limit: 10 }
  test.each([
    ['approvals of a scope', 'approvals_scope', (db: D1Database) => listApprovals(db, { ...query, scope: 'a', now: 0 })],
    ['dead letters of a scope', 'dead_letters_scope', (db: D1Database) => listDeadLetters(db, { ...query, scope: 'a' })],
    ['dead letters of a type', 'dead_letters_type', (db: D1Database) => listDeadLetters(db, { ...query, type: 'a' })],
  ])('reads only %s, in order of age', async (_, index, list) => {
    const plan = await planOf(list)
    expect(plan).toContain(`USING INDEX ${index} (`)
    expect(plan).not.toContain('SCAN dead_letters')
    expect(plan).not.toContain('SCAN approvals')
  })
})
