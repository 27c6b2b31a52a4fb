import { env } from 'cloudflare:workers'
import { beforeAll, expect, test, vi } from 'vitest'
import { LEDGER } from '../../../src/features/market/contract/ledger-api.ts'
import type { NewTransfer, Transfer } from '../../../src/features/market/contract/transfer.ts'
import { call, problem } from '../../support/http.ts'
import { inObject, runAlarm, until } from '../../support/scopes.ts'

const [A, B] = ['scope:departing/a', 'scope:departing/b']
const by = { name: 'test', opens: [A, B] }
const stub = () => env.LEDGER.getByName(LEDGER)
const inLedger = <Found>(work: (sql: SqlStorage) => Found) => inObject(stub() as never, ({ storage }) => work(storage.sql))
const transfer = async (...transfers: NewTransfer[]) => (await stub().transfer(transfers, by)).map(({ status, reason }) => reason ?? status)
const pays = (id: string, more: object = {}) => ({ id, debit: A, credit: B, amount: 5, ...more })
const keptIds = () =>
  inLedger((sql) =>
    sql
      .exec<{ id: string }>('SELECT id FROM transfers ORDER BY seq')
      .toArray()
      .map(({ id }) => id.split('\n')[0]),
  )
const statement = (account: string) => call(`/v1/ledger/accounts/${encodeURIComponent(account)}/statement`)
const idsOf = async (account: string) => (await statement(account)).body.items.map(({ id }: Transfer) => id)

/** All of the history so far becomes 401 days older, also for an object that wakes after this. */
async function age(): Promise<void> {
  const ago = 401 * 86_400_000
  await inLedger((sql) => {
    const [trigger] = sql.exec<{ sql: string }>(`SELECT sql FROM sqlite_master WHERE name = 'transfers_change'`).toArray()
    sql.exec('DROP TRIGGER transfers_change')
    sql.exec('UPDATE transfers SET at = at - ?', ago)
    sql.exec('UPDATE failed SET at = at - ?', ago)
    sql.exec(String(trigger?.sql))
    sql.exec(`UPDATE marks SET seq = 0 WHERE name = 'last pass'`)
  })
  // Its copies have other times: they are to be written again.
  await env.DB.exec('DELETE FROM ledger_transfers')
  await inObject(stub() as never, (state) => state.abort('restart')).catch(() => {})
}

/** The object sends what waits, until nothing of what may leave is there. */
async function pass(newest: string): Promise<void> {
  await until(async () => {
    await runAlarm(stub())
    const sent = 'SELECT min(seq) = (SELECT max(seq) FROM transfers) AS sent FROM marks WHERE name IN (?, ?)'
    return (await inLedger((sql) => sql.exec<{ sent: number }>(sent, 'copied', 'news').one().sent)) === 1
  }, 'the history is copied')
  await age()
  expect(await transfer(pays(newest))).toEqual(['created'])
  await until(async () => {
    await runAlarm(stub())
    return inLedger(
      (sql) => sql.exec<{ over: number }>(`SELECT count(*) AS over FROM marks WHERE name = 'last pass' AND seq > 0`).one().over,
    )
  }, 'the pass is over')
}

beforeAll(async () => {
  await stub().mint({ id: 'mint', to: A, amount: 1000 }, by)
})

test('what is old leaves for D1; statements are whole, the audit adds up, and no id is used twice', async () => {
  const [balance] = [await stub().account(A)]
  expect(await transfer(pays('single'), pays('held', { pending: true }), { id: 'post', pending_id: 'held', post: 2 })).not.toContain(
    'failed',
  )
  expect(await transfer(pays('open', { pending: true }), pays('broke', { amount: 5000 }))).toEqual(['created', 'insufficient_funds'])
  const before = await idsOf(A)
  await pass('newest')
  expect(await keptIds()).toEqual(['open', 'newest'])
  expect(await idsOf(A)).toEqual([...before, 'newest'])
  const audit = await call('/v1/ledger/audit')
  expect(audit.body).toMatchObject({ ok: true, problems: [], minted: 1000, transfers: 6, open_pendings: 1, checkpoint: { transfers: 4 } })
  expect(await stub().account(A)).toMatchObject({ balance: (balance?.balance ?? 0) - 5 - 2 - 5, debits_pending: 5 })
  expect(await transfer(pays('single'), pays('broke', { amount: 1 }))).toEqual(['id_used_long_ago', 'id_used_long_ago'])
  expect((await stub().mint({ id: 'mint', to: A, amount: 1000 }, by)).reason).toBe('id_used_long_ago')
  expect(await transfer({ id: 'late', pending_id: 'open', post: true })).toEqual(['created'])
  expect((await call('/health/detailed')).body.ledger).toMatchObject({ bytes: expect.any(Number), retention_days: 400 })
})

test('a statement whose older part is in D1 alone is refused while D1 does not answer', async () => {
  await env.DB.exec('ALTER TABLE ledger_transfers RENAME TO away')
  const [first, rest] = [await statement(A), await call(`/v1/ledger/accounts/${encodeURIComponent(A)}/statement?after=5`)]
  await env.DB.exec('ALTER TABLE away RENAME TO ledger_transfers')
  expect(first).toMatchObject(problem(503))
  expect(rest.body.items.length).toBeGreaterThan(0)
})

test('calls under a contract stay while it is in force, and leave once it has ended', async () => {
  const terms = { id: 'contract', proposer: A, counterparty: B, service: 'reflex:greet', price_per_invocation: 3, limit: 5 }
  await stub().propose(terms, by)
  await stub().decideContract('contract', 'accept', { account: B })
  await stub().payInvocation('contract', { caller: A, invocation_id: 'call' })
  await stub().settleInvocation('contract', { invocation_id: 'call', served: true, trace_id: null })
  await pass('later')
  expect(await keptIds()).toEqual(['invoke:call', 'invoke:call:end', 'later'])
  await stub().decideContract('contract', 'end', { account: A })
  await pass('last')
  expect(await keptIds()).toEqual(['last'])
  expect(await stub().audit()).toMatchObject({ ok: true, problems: [] })
})

test('what D1 has in another form stays, and the log says so', async () => {
  const warned = vi.spyOn(console, 'warn').mockImplementation(() => {})
  await transfer(pays('altered'))
  const { seq } = await inLedger((sql) => sql.exec<{ seq: number }>('SELECT max(seq) AS seq FROM transfers').one())
  await until(async () => {
    await runAlarm(stub())
    return inLedger(
      (sql) => sql.exec<{ seq: number }>(`SELECT min(seq) AS seq FROM marks WHERE name IN ('copied', 'news')`).one().seq === seq,
    )
  }, 'it is copied')
  await age()
  const insert = `INSERT INTO ledger_transfers (seq, id, debit, credit, amount, kind, at) VALUES (?, 'altered', ?, ?, 6, 'single', '')`
  await env.DB.prepare(insert).bind(seq, A, B).run()
  await transfer(pays('after'))
  await until(async () => {
    await runAlarm(stub())
    return (await keptIds()).length === 2
  }, 'the rest has left')
  expect(await keptIds()).toEqual(['altered', 'after'])
  expect(warned.mock.calls.flat().join('\n')).toContain('D1 has others in their place')
  expect(await stub().audit()).toMatchObject({ ok: true, problems: [] })
})
