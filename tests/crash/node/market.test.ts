import { mkdtempSync, readdirSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { TransferResult } from '../../../src/features/market/contract/transfer.ts'
import { checkDeals, checkDelivered, checkHistory, readBooks, resultsOf } from '../../support/kills/books.ts'
import { ask, Clients, read } from '../../support/kills/clients.ts'
import { KillableServer } from '../../support/kills/server.ts'
import { SCOPES, Traffic, type Answered } from '../../support/kills/traffic.ts'
import { seededRandom } from '../../support/random.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'reflex-'))
/** The environment variable sets the number of kills, with at least ten operations each. */
const KILLS = Number(process.env['REFLEX_LEDGER_KILLS'] ?? 4)
const OPERATIONS = Math.max(300, KILLS * 10)
const CLIENTS = 4
const random = seededRandom(KILLS)
let server: KillableServer

afterAll(async () => {
  await server.stop()
})

/** The file of the first object of a class. */
function fileOf(place: string): string {
  const inside = path.join(folder, 'v3', place)
  return path.join(inside, readdirSync(inside).find((name) => /^[0-9a-f]{64}\.sqlite$/.test(name)) ?? '')
}

/** D1 has to know the scopes before their accounts open. */
async function openScopes(): Promise<void> {
  for (const scope of SCOPES) {
    const event = { type: 'ws.message', connection_id: 'kills', content: 'hello' }
    await ask(server, { method: 'POST', path: `/v1/scopes/${encodeURIComponent(scope)}/events?wait=outcome`, body: event })
  }
  await eventually(async () => (await read<{ items: unknown[] }>(server, '/v1/scopes')).items.length === SCOPES.length)
}

async function makerKey(): Promise<string> {
  const body = { name: 'maker', roles: ['operator'], scopes: ['makers/*'] }
  const made = await ask(server, { method: 'POST', path: '/v1/keys', body })
  if (made?.status !== 201) throw new Error(`the key was answered ${JSON.stringify(made)}`)
  return (made.answer as { key: string }).key
}

async function eventually(look: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await look())) await new Promise((resolve) => setTimeout(resolve, 100))
}

/** Number of things that the Ledger will still send, or that time out within a minute. */
const WAITING = `SELECT (SELECT count(*) FROM outbox) + (SELECT count(*) FROM pendings WHERE expires_at < ?)
  + (SELECT max(seq) FROM transfers) - (SELECT min(seq) FROM marks WHERE name IN ('copied', 'news')) AS waiting`

/** The same requests have the same outcomes. */
async function resend(answered: readonly Answered[]): Promise<void> {
  const after = ({ id, status, reason }: TransferResult): TransferResult => ({
    id,
    status: status === 'failed' ? 'failed' : 'exists',
    reason,
  })
  // Another account may have a pending transfer of this id by now: then the id names two.
  const since = (first: TransferResult, reason: TransferResult['reason']): TransferResult =>
    reason === 'pending_transfer_ambiguous' && first.reason?.startsWith('pending_transfer_') === true ? { ...first, reason } : first
  for (const one of answered.filter(({ kind }) => kind === 'transfers')) {
    const again = await ask(server, one)
    expect(again?.status).toBe(one.status)
    const results = resultsOf({ ...one, answer: again?.answer })
    expect(results).toEqual(resultsOf(one).map((first, at) => since(after(first), results[at]?.reason ?? null)))
  }
}

test(
  'a server whose process is killed again and again makes and loses nothing, and delivers what is paid',
  { timeout: 7_200_000 },
  async () => {
    server = await KillableServer.prepare(folder)
    await server.start()
    await openScopes()
    const maker = await makerKey()
    const clients = new Clients(server, new Traffic(random, { maker, with_expiry: KILLS > 10 }))
    const started = performance.now()
    for (let kills = 0; kills < KILLS; kills += 1) {
      const until = Math.max(clients.answered.length + 1, Math.floor(((kills + random()) * OPERATIONS) / KILLS))
      let over = false
      const life = clients.life(() => over, CLIENTS)
      await Promise.race([life, reached(clients, until, () => over)])
      // Between any two statements: the clients have requests under way.
      await new Promise((resolve) => setTimeout(resolve, random() * 12))
      over = true
      await server.kill()
      await life
      await server.start()
    }
    await clients.life(() => clients.answered.length >= OPERATIONS, CLIENTS)
    await clients.settle()
    const seconds = (performance.now() - started) / 1000

    const ledger = new DatabaseSync(fileOf('do/-Ledger'), { readOnly: true })
    const isQuiet = () => ledger.prepare(WAITING).get(Date.now() + 60_000)?.['waiting'] === 0
    await eventually(isQuiet)
    const { answered, audits, interrupted } = clients
    await resend(answered)
    await clients.audit()
    await eventually(isQuiet)
    const books = await readBooks(server, ledger)
    checkHistory(books, answered)
    checkDeals(books, answered)
    checkDelivered(books, new DatabaseSync(fileOf('d1/miniflare-D1DatabaseObject'), { readOnly: true }), answered)
    const states = Object.groupBy(books.deals.values(), ({ status }) => status)
    const counts = Object.fromEntries(Object.entries(states).map(([state, deals]) => [state, deals.length]))
    console.log(
      JSON.stringify({
        kills: KILLS,
        operations: answered.length,
        interrupted,
        audits,
        transfers: books.transfers.size,
        deals: counts,
        seconds,
      }),
    )
    expect(answered.length).toBeGreaterThanOrEqual(OPERATIONS)
    expect(audits).toBeGreaterThan(KILLS)
  },
)

async function reached(clients: Clients, until: number, isOver: () => boolean): Promise<void> {
  while (clients.answered.length < until && !isOver()) await new Promise((resolve) => setTimeout(resolve, 1))
}
