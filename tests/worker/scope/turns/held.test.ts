import { describe, expect, test } from 'vitest'
import type { AgentDeps } from '../../../../src/agent/define-agent.ts'
import { acting, calls, did } from '../../../support/reflex-chain.ts'
import { framesOf } from '../../../support/socket-frames.ts'
import { freshScope, hurry, inObject, logOf, note, send, sendAndSettle, stubOf, until } from '../../../support/scopes.ts'
import { behaviours } from '../../../support/test-agents.ts'

type Frame = { type: string; id?: string; event_id?: string; content?: string; turn_id?: string | null }

async function connect(scope: string) {
  const by = { connection_id: 'alice', key_id: 'admin', source: 'alice', may_send: true, decides_as: null, after: null }
  const headers = { upgrade: 'websocket', 'x-reflex-connect': JSON.stringify(by) }
  const { webSocket: socket } = await stubOf(scope).fetch('https://scope/ws', { headers })
  if (!socket) throw new Error('no socket')
  return { socket, ...framesOf<Frame>(socket) }
}

const POISON = `CREATE TRIGGER poison BEFORE INSERT ON log BEGIN SELECT RAISE(ABORT, 'poison'); END`

/** Rows of tables after the end of a turn on events that have just arrived could not be written. */
async function afterPoison(scope: string, tables: string[], ...events: ReturnType<typeof note>[]) {
  await inObject(stubOf(scope), async ({ storage }) => void storage.sql.exec(POISON))
  await expect(send(stubOf(scope), ...events)).rejects.toThrow(/poison/)
  const stored = () =>
    inObject(stubOf(scope), async ({ storage }) => {
      const counts = tables.map((table) => [table, storage.sql.exec(`SELECT count(*) AS n FROM ${table}`).one()['n']])
      storage.sql.exec('DROP TRIGGER IF EXISTS poison')
      return Object.fromEntries(counts) as Record<string, number>
    })
  let counts: Record<string, number> | null = null
  await until(async () => (counts ??= await stored().catch(() => null)) !== null, 'the object that failed is gone')
  return counts
}

describe('the end of a turn that cannot be written', () => {
  test.each([
    ['an action of another event', calls('act')],
    ['a note of another event', `return { action_type: 'set_scratch', key: 'noted', value: context.event.text }`],
  ])('leaves neither the events nor %s', async (_, body) => {
    const { scope, stub } = await acting(`if (context.event.text === 'think') return null; ${body}`)
    behaviours.set(scope, async () => null)
    await sendAndSettle(stub, note(scope, 'first'), note(scope, 'think'))
    const counts = await afterPoison(scope, ['events', 'jobs'], note(scope, 'second'), note(scope, 'think'))
    expect(counts).toEqual({ events: 2, jobs: 0 })
    expect(did(scope)).not.toContain('second')
    expect((await stubOf(scope).context(1)).scratch['noted']).not.toBe('second')
  })

  test('leaves no events that were read before', async () => {
    const scope = freshScope()
    behaviours.set(scope, async () => null)
    const first = note(scope, 'first')
    await sendAndSettle(stubOf(scope), first)
    // The receipt of a duplicate names the trace of the first, which is read.
    expect(await afterPoison(scope, ['events', 'log'], first, note(scope, 'second'))).toEqual({ events: 1, log: 1 })
  })
})

test('a log that is read before a scope that failed is gone shows and keeps nothing of what failed', async () => {
  const scope = freshScope()
  behaviours.set(scope, async () => null)
  await sendAndSettle(stubOf(scope), note(scope, 'first'))
  await inObject(stubOf(scope), async ({ storage }) => void storage.sql.exec(POISON.replace('ON log', 'ON events')))
  const stub = stubOf(scope)
  const sent = stub.accept([note(scope, 'second')], 'http').catch(String)
  const reads = Array.from({ length: 5 }, async () => stub.readLog(0, 100).catch(() => ({ entries: [] })))
  expect(await sent).toMatch(/poison/)
  for (const { entries } of await Promise.all(reads)) expect(entries.length).toBeLessThan(5)
  await until(async () => (await logOf(stubOf(scope)).catch(() => null)) !== null, 'the object that failed is gone')
  expect(await logOf(stubOf(scope))).toHaveLength(4)
})

test('a turn that cannot be counted before it begins, after one that failed, begins later', async () => {
  const scope = freshScope()
  behaviours.set(scope, async () => null)
  await sendAndSettle(stubOf(scope), note(scope, 'first'))
  await afterPoison(scope, ['guard'], note(scope, 'second'))
  const poison = `CREATE TRIGGER poison BEFORE INSERT ON guard WHEN NEW.id <> '*' BEGIN SELECT RAISE(ABORT, 'poison'); END`
  await until(async () => inObject(stubOf(scope), async ({ storage }) => storage.sql.exec(poison)).catch(() => null), 'it is there')
  const [id] = await send(stubOf(scope), note(scope, 'third'))
  await scheduler.wait(20)
  expect(await stubOf(scope).event(id!)).toMatchObject({ status: 'pending' })
  await inObject(stubOf(scope), async ({ storage }) => void storage.sql.exec('DROP TRIGGER poison'))
  await until(async () => (await hurry(stubOf(scope)), (await stubOf(scope).event(id!))?.status === 'completed'), 'the turn is over')
})

describe('events that have just arrived are stored before their turn', () => {
  test.each<[string, (deps: AgentDeps) => unknown]>([
    ['asks the web', ({ fetch }) => fetch('https://example.com', { signal: AbortSignal.abort() }).catch(() => null)],
    ['has D1', ({ db }) => db],
    ['publishes elsewhere', async ({ store }) => store.publish(note(freshScope(), 'child'))],
    ['shows a part of its answer', ({ stream }) => stream('part')],
    ['answers', ({ reply }) => reply('said')],
  ])('%s', async (_, act) => {
    const scope = freshScope()
    const { sql } = await inObject(stubOf(scope), async ({ storage }) => storage)
    const stored: unknown[] = []
    behaviours.set(scope, async (_context, deps) => {
      const acted = act(deps)
      stored.push(...['events', 'log'].map((table) => sql.exec(`SELECT EXISTS (SELECT 1 FROM ${table} WHERE seq > 0) AS n`).one()['n']))
      await acted
      return null
    })
    await sendAndSettle(stubOf(scope), note(scope, 'one'))
    expect(stored).toEqual([1, 1])
  })
})

describe('a socket', () => {
  test('gets a reply after the ack', async () => {
    const says = `if (!context.event.text.startsWith('say')) return null; return { action_type: 'reply', content: context.event.text }`
    const { scope } = await acting(says)
    behaviours.set(scope, async () => null)
    const { socket, frame, frames } = await connect(scope)
    const events = ['a', 'b', ...Array.from({ length: 6 }, (_, nth) => [`say ${nth}`, `think ${nth}`]).flat()].map((text) =>
      note(scope, text),
    )
    for (const event of events) socket.send(JSON.stringify(event))
    await frame('ack', ({ id }) => id === events.at(-1)!.id)
    await frame('delta', ({ content }) => content === 'say 5')
    const order = frames.flatMap(({ type, id, event_id }) => (type === 'ack' || type === 'delta' ? [`${type} ${id ?? event_id}`] : []))
    for (const { id } of events.filter(({ text }) => text.startsWith('say')))
      expect(order.indexOf(`ack ${id}`)).toBeLessThan(order.indexOf(`delta ${id}`))
  })

  test('gets parts of an answer after the ack', async () => {
    const scope = freshScope()
    behaviours.set(scope, async (_, { stream }) => {
      stream('hi')
    })
    const { socket, frame, frames } = await connect(scope)
    socket.send(JSON.stringify(note(scope, 'a')))
    await frame('ack')
    await frame('delta')
    expect(frames.map(({ type }) => type).filter((type) => type === 'ack' || type === 'delta')).toEqual(['ack', 'delta'])
  })
})
