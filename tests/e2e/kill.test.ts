import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startServer, type LocalServer } from '../../cli/lib/local-server.ts'
import { ADMIN_KEY, bodyOf, call, eventually, scopePath, temporaryState, wholeLog } from './api.ts'

const SCOPES = ['ssh/kill-1', 'ssh/kill-2', 'ssh/kill-3']
const ROUNDS = 3
const BATCHES_PER_ROUND = 30
const BATCH = 25
const outcomes = ['completed', 'ignored', 'dead_lettered', 'cancelled']

const state = await temporaryState()
/** Every call of the webhook, by its idempotency key. */
const webhook = new Map<string, number>()
const receiver = createServer((request, response) => {
  // The time of the block, after the effect's key: nothing is unblocked here, so one of each
  // exists.
  const key = String(request.headers['idempotency-key']).replace(/ \d+$/, '')
  webhook.set(key, (webhook.get(key) ?? 0) + 1)
  request.resume().on('end', () => response.end('{}'))
})
let server: LocalServer

async function start(): Promise<LocalServer> {
  const { port } = receiver.address() as AddressInfo
  return startServer({
    persist_to: state.directory,
    migrated: true,
    vars: { REFLEX_ADMIN_KEY: ADMIN_KEY, BLOCK_WEBHOOK_URL: `http://127.0.0.1:${port}/block` },
  })
}

beforeAll(async () => {
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  server = await start()
})
afterAll(async () => {
  await server.stop()
  receiver.close()
  await state.remove()
})

type Line = { id: string; type: 'log.line'; scope: string; host: string; line: string; timestamp: string }
let made = 0

/** Lines of many attackers, so that addresses are blocked all the time. */
function lines(scope: string): Line[] {
  return Array.from({ length: BATCH }, () => {
    made += 1
    const attacker = `198.51.100.${1 + (Math.floor(made / 12) % 200)}`
    const line = `Dec 10 06:55:46 web sshd[24200]: Failed password for root from ${attacker} port 38926 ssh2`
    return { id: randomUUID(), type: 'log.line', scope, host: 'web', line, timestamp: new Date().toISOString() }
  })
}

test('the server killed with -9 under load loses nothing that it accepted, and no effect with a key is done twice', async () => {
  const accepted = new Map<string, string>()
  const note = (events: readonly Line[], answer: Awaited<ReturnType<typeof call>>) => {
    if (answer?.status === 202) for (const { id, scope } of events) accepted.set(id, scope)
    return answer?.status === 202
  }
  const send = async (index: number): Promise<void> => {
    const scope = SCOPES[index % SCOPES.length]!
    const events = lines(scope)
    const route = index % 2 === 0 ? '/v1/events' : `${scopePath(scope)}/events`
    // A client without a response resends the same ids: accepted ones are duplicates.
    while (!note(events, await call(server.url, route, { body: events }))) await new Promise((resolve) => setTimeout(resolve, 200))
  }

  for (let round = 0; round < ROUNDS; round += 1) {
    const batches = Array.from({ length: BATCHES_PER_ROUND }, (_, index) => index)
    const workers = Array.from({ length: 4 }, async () => {
      for (let index = batches.shift(); index !== undefined; index = batches.shift()) await send(index)
    })
    // In the middle of the load, at another moment each time.
    await eventually(async () => batches.length <= 20 - 4 * round, 'the load is on')
    await server.kill9()
    server = await start()
    await Promise.all(workers)
  }
  expect(accepted.size).toBe(ROUNDS * BATCHES_PER_ROUND * BATCH)
  expect(accepted.size).toBeGreaterThanOrEqual(2000)

  await eventually(
    async () => {
      const states = await Promise.all(SCOPES.map((scope) => call(server.url, scopePath(scope))))
      const known = await Promise.all(
        SCOPES.map((scope) => call(server.url, `/v1/events?status=queued&scope=${encodeURIComponent(scope)}`)),
      )
      const open = states.map((answer) =>
        Object.values((bodyOf(answer) as { inbox: Record<string, number> }).inbox).reduce((sum, count) => sum + count, 0),
      )
      const queued = known.map((answer) => (bodyOf(answer) as { items: unknown[] }).items.length)
      return [...open, ...queued].every((count) => count === 0)
    },
    'every event has its outcome',
    400_000,
  )

  const ended = new Map<string, number>()
  const done = new Map<string, number>()
  const unknown = new Map<string, number>()
  const add = (counts: Map<string, number>, key: string) => counts.set(key, (counts.get(key) ?? 0) + 1)
  for (const scope of SCOPES) {
    for (const entry of await wholeLog(server.url, scope)) {
      if (entry['kind'] === 'event-ended') for (const id of entry['event_ids'] as string[]) add(ended, id)
      if (entry['kind'] !== 'effect-ended' || entry['idempotence_key'] === null) continue
      const key = `${scope} ${entry['idempotence_key'] as string}`
      if (entry['status'] === 'ok') add(done, key)
      if (entry['status'] === 'unknown') add(unknown, key)
    }
  }
  for (const [id, scope] of accepted) expect(ended.get(id), `outcomes of ${id} in ${scope}`).toBe(1)
  // Reads the log, and D1 below: a request per event would take longer than all the rest.
  for (const [id, scope] of Array.from(accepted).filter((_, index) => index % 10 === 0)) {
    const record = await call(server.url, `${scopePath(scope)}/events/${id}`)
    expect(outcomes).toContain((bodyOf(record) as { status: string }).status)
  }
  // Nothing that was never sent, either.
  expect(ended.size).toBe(accepted.size)

  expect(done.size).toBeGreaterThan(50)
  for (const [key, times] of done) expect(times, `${key} is recorded as done`).toBe(1)
  // The receiver recognises a repeated call by its key, and gets one only if the outcome is
  // unknown.
  for (const [key, times] of webhook) expect(times, `calls with ${key}`).toBeLessThanOrEqual(1 + (unknown.get(key) ?? 0))
  expect(webhook.size).toBe(done.size)

  await eventually(async () => {
    const rows = await Promise.all(SCOPES.map((scope) => countInD1(server.url, scope)))
    return rows.reduce((sum, count) => sum + count, 0) === accepted.size
  }, 'D1 knows every outcome')
})

async function countInD1(url: string, scope: string): Promise<number> {
  let count = 0
  let cursor: string | null = ''
  while (cursor !== null) {
    const answer = await call(url, `/v1/events?limit=1000&scope=${encodeURIComponent(scope)}${cursor && `&cursor=${cursor}`}`)
    const page = bodyOf(answer) as { items: { status: string }[]; next_cursor: string | null }
    count += page.items.filter(({ status }) => outcomes.includes(status)).length
    cursor = page.next_cursor
  }
  return count
}
