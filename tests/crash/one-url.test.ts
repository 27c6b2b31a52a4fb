import { expect, test } from 'vitest'
import { live, type Place } from '../support/crash-at-write.ts'
import { call, scopePath } from '../support/http.ts'
import { freshScope, logOf, stubOf, until } from '../support/scopes.ts'

type End = { writes: number; status: number; ends: string[]; record: string | null }

/** Asks a model once, by a scope that dies at the place, and reads what its log says after. */
async function ask(place: Place | null): Promise<End> {
  const scope = freshScope('answered')
  const headers = { 'x-reflex-scope': scope }
  const life = await live(scope, place)
  const json = { model: 'any', messages: [{ role: 'user', content: 'hello' }] }
  const { status } = await call('/v1/openai/chat/completions', { json, headers })
  if (place) await until(async () => life.buried, 'it has died')
  const events = await until(async () => {
    const { body } = await call(scopePath(scope, '/events'))
    const { items = [] } = body as { items?: { status: string; ended_at: string | null }[] }
    return items.every(({ ended_at }) => ended_at !== null) && items
  }, 'each event has its outcome')
  const log = await logOf(stubOf(scope))
  const ends = log.flatMap((entry) => (entry.kind === 'turn-ended' ? [entry.status] : []))
  expect(log.filter(({ kind }) => kind === 'turn-started')).toHaveLength(ends.length)
  return { writes: life.writes, status, ends, record: events[0]?.status ?? null }
}

test('a request is recorded by two units, and no answer leaves before the second', { timeout: 120_000 }, async () => {
  expect(await ask(null)).toEqual({ writes: 2, status: 200, ends: ['result'], record: 'completed' })
  expect(await ask({ at: 1, side: 'before' })).toMatchObject({ status: 500, ends: [], record: null })
  const lost = { status: 500, ends: ['lost'], record: 'cancelled' }
  expect(await ask({ at: 1, side: 'after' })).toMatchObject(lost)
  expect(await ask({ at: 2, side: 'before' })).toMatchObject(lost)
  expect(await ask({ at: 2, side: 'after' })).toMatchObject({ status: 500, ends: ['result'], record: 'completed' })
})
