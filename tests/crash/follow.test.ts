import { env } from 'cloudflare:workers'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { findEvent } from '../../src/store/events.ts'
import { eventSpan } from '../../src/traces/ids.ts'
import { live, type Place } from '../support/crash-at-write.ts'
import { call, scopePath } from '../support/http.ts'
import { outside } from '../support/mock-fetch.ts'
import { write } from '../support/reflex-chain.ts'
import { EXPORTED, HOST, scopeWith } from '../support/scope-with-remote-tools.ts'
import { entriesOf, evict, note, stubOf, until, type Note } from '../support/scopes.ts'
import { behaviours } from '../support/test-agents.ts'

const HOOKS = `https://${HOST}/hooks`

let world: ReturnType<typeof outside>
beforeEach(() => {
  world = outside(HOST, () => Response.json({}))
})
afterEach(() => world.restore())

/** The notices of an event by their ids, which receivers recognize. */
const noticesOf = ({ id }: Note): Set<string | null> =>
  new Set(world.requests.filter(({ url, body }) => url === HOOKS && body.includes(id)).map(({ headers }) => headers.get('webhook-id')))

const isExported = (scope: string, { id }: Note): boolean =>
  world.requests.some(({ url, body }) => url !== HOOKS && body.includes(`"spanId":"${eventSpan({ scope, id })}"`))

const statusInD1 = async ({ id }: Note) => (await findEvent(env.DB, id, { patterns: ['*'] }))?.status

/** An event that a reflex decides, and one with a turn, in a scope that may die at a write. */
async function run(place: Place | null) {
  const hook = { name: 'ops', url: HOOKS, secret: 'REFLEX_WEBHOOK_OPS', on: ['event.ended'] }
  const scope = await scopeWith({ webhooks: [hook] }, EXPORTED)
  const { id } = await write(`return context.event.text === 'greet' ? { action_type: 'reply', content: 'hi' } : null`)
  expect(await stubOf(scope).configure({ reflexes: [{ id }] }, 'ops')).toMatchObject({ ok: true })
  behaviours.set(scope, async () => ({ said: 'done' }))
  const life = await live(scope, place)
  const events = [note(scope, 'greet'), note(scope, 'think')]
  for (const event of events) {
    const sent = () => call(scopePath(scope, '/events'), { json: event })
    await until(async () => (await sent()).status === 202, 'the event is accepted')
    const record = () => call(scopePath(scope, `/events/${event.id}`))
    await until(async () => (await record()).body?.ended_at as string | null | undefined, 'the event has its outcome')
  }
  life.over = true
  if (life.died) await until(async () => life.buried, 'it has died')
  const ended = () => entriesOf(stubOf(scope), 'notice-ended').catch(() => [])
  await until(async () => (await ended()).length >= events.length, 'the notices have ended')
  for (const event of events) {
    await until(async () => (await statusInD1(event)) === 'completed', 'D1 has the event')
    await until(async () => isExported(scope, event), 'the collector has the span of the event')
  }
  const { fired } = await stubOf(scope).state()
  await evict(stubOf(scope))
  const { fired: read_again } = await stubOf(scope).state()
  return {
    life,
    seen: {
      notices: events.map((event) => noticesOf(event).size),
      ended: (await ended()).length,
      decided: [fired.decided, read_again.decided],
    },
  }
}

describe('what follows the log', () => {
  test.each(['before', 'after'] as const)(
    'counts, reports and copies each event once, dying %s any write',
    { timeout: 120_000 },
    async (side) => {
      const calm = await run(null)
      expect(calm.seen).toEqual({ notices: [1, 1], ended: 2, decided: [1, 1] })
      expect(calm.life.writes).toBeGreaterThan(4)
      const faults: unknown[] = []
      for (let at = 1; at <= calm.life.writes; at += 1) {
        const { seen } = await run({ at, side })
        if (JSON.stringify(seen) !== JSON.stringify(calm.seen)) faults.push({ at, ...seen })
      }
      expect(faults).toEqual([])
    },
  )
})
