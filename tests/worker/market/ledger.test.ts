import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { LEDGER } from '../../../src/features/market/contract/ledger-api.ts'
import type { NewTransfer, Transfer } from '../../../src/features/market/contract/transfer.ts'
import { call, keyFor, problem } from '../../support/http.ts'
import { runAlarm, until } from '../../support/scopes.ts'

const nameOf = (prefix: string) => `${prefix}/${crypto.randomUUID().slice(0, 8)}`
const [A, B] = ['scope:a', 'scope:b']
const ledger = env.LEDGER.getByName(LEDGER)
/** Two accounts of their own. */
function freshAccounts() {
  const opens = [`scope:${nameOf('a')}`, `scope:${nameOf('b')}`]
  const [A = '', B = ''] = opens
  const by = { name: 'test', opens }
  const transfer = async (...transfers: NewTransfer[]) =>
    (await ledger.transfer(transfers, by)).map(({ status, reason }) => reason ?? status)
  const mint = (amount: number) => ledger.mint({ id: `mint:${A}`, to: A, amount }, by)
  return { A, B, transfer, mint, id: (name: string) => `${name}:${A}` }
}
const inLedger = <Found>(work: (sql: SqlStorage) => Found) =>
  runInDurableObject(ledger as never, (_, { storage }: DurableObjectState) => work(storage.sql))
const copied = (id: string) => env.DB.prepare('SELECT * FROM ledger_transfers WHERE id = ?').bind(id).first()
const ofAccount = async (account: string, what: string) => (await call(`/v1/ledger/accounts/${encodeURIComponent(account)}/${what}`)).body

describe('a statement', () => {
  test('is complete, however much of it D1 has', async () => {
    const { A, B, transfer, mint, id } = freshAccounts()
    await mint(9)
    for (const name of ['one', 'two']) await transfer({ id: id(name), debit: A, credit: B, amount: 2 })
    await until(async () => {
      await runAlarm(ledger)
      return copied(id('two'))
    }, 'the transfers are copied')
    await inLedger((sql) => sql.exec('UPDATE marks SET seq = 9007199254740991 WHERE name = ?', 'copied'))
    await transfer({ id: id('three'), debit: A, credit: B, amount: 3 })
    expect(await copied(id('three'))).toBeNull()
    const ids = [`mint:${A}`, id('one'), id('two'), id('three')]
    const pages: string[] = []
    for (let cursor: string | null = ''; cursor !== null;) {
      const page: { items: Transfer[]; next_cursor: string | null } = await ofAccount(
        A,
        `statement?limit=1${cursor && `&cursor=${cursor}`}`,
      )
      pages.push(...page.items.map((item) => item.id))
      cursor = page.next_cursor
    }
    expect(pages).toEqual(ids)
    expect((await ofAccount(A, 'statement')).items.map((item: Transfer) => item.id)).toEqual(ids)
    await env.DB.exec('ALTER TABLE ledger_transfers RENAME TO away')
    expect((await ofAccount(A, 'statement')).items.map((item: Transfer) => item.id)).toEqual(ids)
    await env.DB.exec('ALTER TABLE away RENAME TO ledger_transfers')
    // So that nothing of it is missing for the other tests.
    await inLedger((sql) => sql.exec('UPDATE marks SET seq = (SELECT max(seq) - 1 FROM transfers) WHERE name = ?', 'copied'))
    await until(async () => {
      await ledger.account(A)
      await runAlarm(ledger)
      return copied(id('three'))
    }, 'the last one is copied')
  })

  test('is complete after D1 was restored to an earlier time', async () => {
    const { A, B, transfer, mint, id } = freshAccounts()
    const isCopied = (name: string) =>
      until(async () => {
        await runAlarm(ledger)
        return copied(name)
      }, `${name} is copied`)
    await mint(9)
    await transfer({ id: id('lost'), debit: A, credit: B, amount: 2 })
    await isCopied(id('lost'))
    await env.DB.prepare('DELETE FROM ledger_transfers WHERE seq >= (SELECT seq FROM ledger_transfers WHERE id = ?)').bind(id('lost')).run()
    await transfer({ id: id('later'), debit: A, credit: B, amount: 3 })
    await isCopied(id('later'))
    expect((await ofAccount(A, 'statement')).items.map((item: Transfer) => item.id)).toEqual([`mint:${A}`, id('lost'), id('later')])
  })

  test('is summed in a report, without money that is only reserved, which says as of when', async () => {
    const { A, B, transfer, mint, id } = freshAccounts()
    await mint(9)
    await transfer({ id: id('tea'), debit: A, credit: B, amount: 2, code: 'tea' }, { id: id('back'), debit: B, credit: A, amount: 1 })
    await transfer({ id: id('held'), debit: A, credit: B, amount: 3, pending: true })
    const report = await until(async () => {
      await runAlarm(ledger)
      return (await copied(id('held'))) && ofAccount(A, 'report?by=code')
    }, 'the transfers are copied')
    expect(report.items).toEqual([
      { group: 'mint', debits: 0, credits: 9, transfers: 1 },
      { group: 'tea', debits: 2, credits: 0, transfers: 1 },
      { group: '', debits: 0, credits: 1, transfers: 1 },
    ])
    expect(report.as_of.seq).toBe((await ledger.statement(A, { after: null, limit: 100 })).items.at(-1)?.seq)
    const day = new Date().toISOString().slice(0, 10)
    expect((await ofAccount(A, 'report')).items).toEqual([{ group: day, debits: 2, credits: 10, transfers: 3 }])
    expect((await ofAccount(A, `report?by=counterparty&until=${day}T00:00:00Z`)).items).toEqual([])
    expect((await ofAccount(A, 'report?by=counterparty')).items).toMatchObject([{ group: 'genesis' }, { group: B, debits: 2, credits: 1 }])
  })
})

test('a pending transfer reserves its amount, and ends once', async () => {
  const { A, B, transfer, mint, id } = freshAccounts()
  await mint(100)
  expect(await transfer({ id: id('p'), debit: A, credit: B, amount: 60, pending: true })).toEqual(['created'])
  expect(await ledger.account(A)).toMatchObject({ balance: 100, available: 40, debits_pending: 60, debits_posted: 0 })
  expect(await transfer({ id: id('q'), debit: A, credit: B, amount: 41 })).toEqual(['insufficient_funds'])
  expect(await transfer({ id: id('over'), pending_id: id('p'), post: 61 })).toEqual(['exceeds_pending_amount'])
  expect(await transfer({ id: id('post'), pending_id: id('p'), post: 50 })).toEqual(['created'])
  expect(await transfer({ id: id('post2'), pending_id: id('p'), post: true })).toEqual(['pending_transfer_already_posted'])
  expect(await transfer({ id: id('void'), pending_id: id('p'), void: true })).toEqual(['pending_transfer_already_posted'])
  expect(await ledger.account(A)).toMatchObject({ balance: 50, available: 50, debits_pending: 0, debits_posted: 50 })
  expect(await ledger.account(B)).toMatchObject({ balance: 50, available: 50, credits_pending: 0 })
  expect(await ledger.audit()).toMatchObject({ ok: true, problems: [] })
})

test('the history is never changed or deleted', async () => {
  const { A, mint } = freshAccounts()
  await mint(5)
  await inLedger((sql) => {
    expect(() => sql.exec('UPDATE transfers SET amount = 6')).toThrow('never changed')
    expect(() => sql.exec('DELETE FROM transfers')).toThrow('never deleted')
    expect(() => sql.exec(`UPDATE accounts SET debits_posted = 6 WHERE id = '${A}'`)).toThrow('CHECK')
  })
})

const send = (json: unknown, key?: string) => call('/v1/ledger/transfers', { json, ...(key === undefined ? {} : { key }) })
async function scopes(...names: string[]): Promise<string[]> {
  for (const name of names)
    await env.DB.prepare('INSERT INTO scopes (scope, agent, open, updated_at) VALUES (?, ?, 0, 0)').bind(name, 'prompted').run()
  return names.map((name) => `scope:${name}`)
}

test('scrip is minted by admins of all scopes; those of a tenant pass on what they were given', async () => {
  const berlin = nameOf('berlin')
  const [treasury = '', shop = ''] = await scopes(`${berlin}/treasury`, `${berlin}/shop`)
  const tenant = await keyFor(['admin'], [`${berlin}/*`])
  const mint = (key?: string) =>
    call('/v1/ledger/mint', { json: { id: crypto.randomUUID(), to: treasury, amount: 10 }, ...(key !== undefined && { key }) })
  expect(await mint(tenant)).toMatchObject({ status: 403, body: { detail: expect.stringContaining('a budget') } })
  const granting = { method: 'PATCH', json: { market: { opening_grant: 5 } }, key: tenant }
  const granted = await call(`/v1/scopes/${encodeURIComponent(`${berlin}/shop`)}`, granting)
  expect(granted).toMatchObject({ status: 403, body: { detail: expect.stringContaining('admin of all scopes') } })
  expect((await mint()).body.results).toMatchObject([{ status: 'created' }])
  const passed_on = { id: crypto.randomUUID(), debit: treasury, credit: shop, amount: 5 }
  expect((await send(passed_on, tenant)).body.results).toMatchObject([{ status: 'created' }])
})

test('over HTTP, scopes pay each other, and each id has one outcome', async () => {
  const [shop = '', cook = ''] = await scopes(nameOf('shop'), nameOf('cook'))
  const id = crypto.randomUUID()
  const minted = await call('/v1/ledger/mint', { json: { id: `mint-${id}`, to: shop, amount: 10 } })
  expect(minted.body).toEqual({ results: [{ id: `mint-${id}`, status: 'created', reason: null }] })
  const paid = { id, debit: shop, credit: cook, amount: 4, memo: 'soup' }
  expect((await send(paid)).body.results).toEqual([{ id, status: 'created', reason: null }])
  expect((await send(paid)).body.results).toEqual([{ id, status: 'exists', reason: null }])
  expect((await send({ ...paid, amount: 5 })).body.results).toEqual([{ id, status: 'failed', reason: 'exists_with_different_amount' }])
  const broke = { id: `${id}-broke`, debit: shop, credit: cook, amount: 7 }
  const failed = [{ id: broke.id, status: 'failed', reason: 'insufficient_funds' }]
  expect((await send(broke)).body.results).toEqual(failed)
  await call('/v1/ledger/mint', { json: { id: `mint2-${id}`, to: shop, amount: 10 } })
  expect((await send(broke)).body.results).toEqual(failed)
  const statement = await call(`/v1/ledger/accounts/${encodeURIComponent(cook)}/statement`)
  expect(statement.body).toMatchObject({ items: [{ id, debit: shop, credit: cook, amount: 4, kind: 'single' }], next_cursor: null })
  expect((await call('/v1/ledger/audit')).body).toMatchObject({ ok: true, problems: [] })
})

test('a mint to a scope that is not known yet burns no id, and says what to do; once it is known, the same mint is made', async () => {
  const name = nameOf('young')
  const minted = () => call('/v1/ledger/mint', { json: { id: `mint-${name}`, to: `scope:${name}`, amount: 10 } })
  const early = await minted()
  expect(early).toMatchObject(problem(404))
  expect(early.text).toContain('send the same mint again')
  await scopes(name)
  expect((await minted()).body.results).toEqual([{ id: `mint-${name}`, status: 'created', reason: null }])
})

test('a key that has added as much as one may in a day is refused, and its namesake is not', async () => {
  const [shop = '', cook = ''] = await scopes(nameOf('shop'), nameOf('cook'))
  await call('/v1/ledger/mint', { json: { id: crypto.randomUUID(), to: shop, amount: 10 } })
  const [full, other] = [await keyFor(['operator'], ['*'], 'till'), await keyFor(['operator'], ['*'], 'till')]
  const pay = (key: string, id = crypto.randomUUID()) => send({ id, debit: shop, credit: cook, amount: 1 }, key)
  const known = crypto.randomUUID()
  expect(await pay(full, known)).toMatchObject({ status: 200 })
  await inLedger((sql) => sql.exec('UPDATE growth SET bytes = 9999999'))
  expect(await pay(full)).toMatchObject(problem(429))
  expect((await pay(full, known)).body.results).toMatchObject([{ status: 'exists' }])
  expect((await pay(other)).body.results).toMatchObject([{ status: 'created' }])
  await inLedger((sql) => sql.exec('DELETE FROM growth'))
})

test.each([0, -1, 0.5, 2 ** 53, '5'])('an amount of %s is refused before the ledger sees it', async (amount) => {
  expect(await send({ id: 'bad', debit: A, credit: B, amount })).toMatchObject(problem(400))
})

test.each([
  [{ debit: A }, 'give debit, credit and amount'],
  [{ debit: A, credit: B, amount: 1, timeout_s: 5 }, 'timeout_s needs pending'],
  [{ pending_id: 'p' }, 'give one of post and void'],
  [{ pending_id: 'p', post: true, amount: 3 }, 'a transfer with pending_id has only post or void'],
])('fields that make no transfer are refused: %o', async (fields, why) => {
  const answer = await send({ id: 'bad', ...fields })
  expect(answer).toMatchObject(problem(400))
  expect(answer.text).toContain(why)
})

test('nobody pays itself, nobody unknown is paid, and a deleted key is paid no more', async () => {
  const [shop = ''] = await scopes(nameOf('shop'))
  await call('/v1/ledger/mint', { json: { id: crypto.randomUUID(), to: shop, amount: 10 } })
  const reasonOf = async (fields: object) =>
    (await send({ id: crypto.randomUUID(), debit: shop, amount: 1, ...fields })).body.results[0].reason
  expect(await reasonOf({ credit: shop })).toBe('accounts_must_differ')
  expect(await reasonOf({ credit: 'scope:nobody/here' })).toBe('credit_account_not_found')
  expect(await reasonOf({ credit: 'escrow' })).toBe('escrow_only_deals')
  const name = nameOf('bot')
  const { body: key } = await call('/v1/keys', { json: { name, roles: ['publisher'], scopes: ['*'] } })
  expect(await reasonOf({ credit: `key:${name}` })).toBeNull()
  await call(`/v1/keys/${key.id}`, { method: 'DELETE' })
  expect(await reasonOf({ credit: `key:${name}` })).toBe('credit_account_closed')
  // Its balance is not lost: admins of all scopes give it to somebody.
  const back = { id: crypto.randomUUID(), debit: `key:${name}`, credit: shop, amount: 1 }
  expect((await send(back)).body.results).toMatchObject([{ status: 'created' }])
  const statement = await ofAccount(`key:${name}`, 'statement')
  expect(statement.items.at(-1)).toMatchObject({ id: back.id, by: 'admin' })
})

test('a key whose transfers failed too often in a day makes only those that do not fail', async () => {
  const { A, mint } = freshAccounts()
  await mint(5)
  await scopes(...[A].map((account) => account.slice('scope:'.length)))
  const failing = (n: number) =>
    Array.from({ length: n }, () => ({ id: crypto.randomUUID(), debit: A, credit: 'scope:nobody/here', amount: 1 }))
  const operator = await keyFor(['operator'], [A.slice('scope:'.length)], nameOf('clumsy'))
  for (let batch = 0; batch < 10; batch += 1) expect(await send(failing(1000), operator)).toMatchObject({ status: 200 })
  const refused = await send(failing(1), operator)
  expect(refused).toMatchObject(problem(429))
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  const fine = { id: crypto.randomUUID(), debit: A, credit: (await scopes(nameOf('cook')))[0], amount: 1 }
  expect((await send(fine, operator)).body.results).toMatchObject([{ status: 'created' }])
})

test('a key pays from its own account and from scopes that it operates, and from no other', async () => {
  const [shop = '', cook = ''] = await scopes(nameOf('shop'), nameOf('cook'))
  await call('/v1/ledger/mint', { json: { id: crypto.randomUUID(), to: shop, amount: 10 } })
  const asked = () => ({ id: crypto.randomUUID(), debit: shop, credit: cook, amount: 1 })
  const operator = await keyFor(['operator'], [shop.slice('scope:'.length)])
  expect((await send(asked(), operator)).body.results).toMatchObject([{ status: 'created' }])
  expect(await send({ ...asked(), debit: cook, credit: shop }, operator)).toMatchObject(problem(403))
  expect(await send(asked(), await keyFor(['publisher'], ['*']))).toMatchObject(problem(403))
  const pending = { ...asked(), pending: true }
  await send(pending, operator)
  const payee = await keyFor(['operator'], [cook.slice('scope:'.length)])
  expect(await send({ id: crypto.randomUUID(), pending_id: pending.id, post: true }, payee)).toMatchObject(problem(403))
  const strange = await send({ id: crypto.randomUUID(), pending_id: pending.id, void: true }, await keyFor(['operator'], ['elsewhere']))
  expect(strange).toMatchObject(problem(403))
  expect(strange.text).not.toContain(shop)
  const voided = await send({ id: crypto.randomUUID(), pending_id: pending.id, void: true }, payee)
  expect(voided.body.results).toMatchObject([{ status: 'created' }])
  for (const debit of ['genesis', 'escrow']) expect(await send({ ...asked(), debit })).toMatchObject(problem(403))
  expect(await call('/v1/ledger/audit', { key: operator })).toMatchObject(problem(403))
})

test('an admin of some scopes acts for no other key, and an admin of all scopes does', async () => {
  const [team = ''] = await scopes(nameOf('team'))
  const name = nameOf('bob')
  await call('/v1/keys', { json: { name, roles: ['publisher'], scopes: ['*'] } })
  const mint = (key?: string) =>
    call('/v1/ledger/mint', { json: { id: crypto.randomUUID(), to: `key:${name}`, amount: 10 }, ...(key === undefined ? {} : { key }) })
  expect((await mint()).body.results).toMatchObject([{ status: 'created' }])
  const paid = () => ({ id: crypto.randomUUID(), debit: `key:${name}`, credit: team, amount: 1 })
  expect((await send(paid())).body.results).toMatchObject([{ status: 'created' }])
  const admin = await keyFor(['admin'], [team.slice('scope:'.length)])
  expect(await mint(admin)).toMatchObject(problem(403))
  expect(await send(paid(), admin)).toMatchObject(problem(403))
})

test('a key neither ends the transfers of another key with its name, nor reads its account', async () => {
  const [shop = ''] = await scopes(nameOf('shop'))
  const name = nameOf('twin')
  const owner = await keyFor(['publisher', 'viewer'], ['twin'], name)
  await call('/v1/ledger/mint', { json: { id: crypto.randomUUID(), to: `key:${name}`, amount: 10 } })
  const twin = await keyFor(['publisher', 'viewer'], ['twin'], name)
  const id = crypto.randomUUID()
  const pending = { id, debit: `key:${name}`, credit: shop, amount: 4, pending: true }
  expect((await send(pending, owner)).body.results).toMatchObject([{ status: 'created' }])
  expect(await send({ id: `${id}-post`, pending_id: id, post: true }, twin)).toMatchObject(problem(403))
  expect(await send({ id: `${id}-void`, pending_id: id, void: true }, twin)).toMatchObject(problem(403))
  const { key_id } = (await call('/v1/key', { key: owner })).body
  const pathOf = (text: string) => `/v1/ledger/accounts/${encodeURIComponent(`key:${text}`)}`
  for (const read of [pathOf(key_id), `${pathOf(key_id)}/statement`]) {
    expect(await call(read, { key: twin })).toMatchObject(problem(403))
    expect((await call(read, { key: owner })).status).toBe(200)
  }
  const strange = await call(pathOf(key_id), { key: await keyFor(['viewer'], ['elsewhere']) })
  expect(strange).toMatchObject(problem(403))
  expect(strange.text).not.toContain(name)
  // By its name each key means its own account, and the twin's account is not open.
  expect((await call(pathOf(name), { key: owner })).status).toBe(200)
  expect(await call(pathOf(name), { key: twin })).toMatchObject(problem(404))
  expect((await send({ id: `${id}-own`, pending_id: id, void: true }, owner)).body.results).toMatchObject([{ status: 'created' }])
})

test('a key whose name another key took first has an account of its own, which others name by its id', async () => {
  const name = nameOf('paris-shop')
  const [payer = ''] = await scopes(nameOf('payer'))
  const mint = (to: string) => call('/v1/ledger/mint', { json: { id: crypto.randomUUID(), to, amount: 10 } })
  await mint(payer)
  const squatter = await keyFor(['operator'], ['evil/*'], name)
  const pay = (credit: string, key?: string, debit = payer) => send({ id: crypto.randomUUID(), debit, credit, amount: 3 }, key)
  expect((await mint(`key:${name}`)).body.results).toMatchObject([{ status: 'created' }])
  const owner = await keyFor(['operator'], ['paris/*'], name)
  const ambiguous = await pay(`key:${name}`)
  expect(ambiguous).toMatchObject(problem(400))
  expect(ambiguous.text).toContain('use key:ID')
  const { key_id } = (await call('/v1/key', { key: owner })).body
  expect((await pay(`key:${key_id}`)).body.results).toMatchObject([{ status: 'created' }])
  const balance = async (key: string) => (await call(`/v1/ledger/accounts/${encodeURIComponent(`key:${name}`)}`, { key })).body.balance
  expect([await balance(owner), await balance(squatter)]).toEqual([3, 10])
  expect((await pay(payer, owner, `key:${name}`)).body.results).toMatchObject([{ status: 'created' }])
  expect(await pay(payer, squatter, `key:${key_id}`)).toMatchObject(problem(403))
  expect([await balance(owner), await balance(squatter)]).toEqual([0, 10])
})

test('an id that a stranger used, or reserves money for, is still free for each other account', async () => {
  const [shop = '', cook = '', evil = ''] = await scopes(nameOf('shop'), nameOf('cook'), nameOf('evil'))
  for (const to of [shop, evil]) await call('/v1/ledger/mint', { json: { id: `mint-${to}`, to, amount: 100 } })
  const of = (account: string) => keyFor(['operator'], [account.slice('scope:'.length)])
  const [owner, stranger, payee] = [await of(shop), await of(evil), await of(cook)]
  const id = `invoice-${crypto.randomUUID()}`
  const reserve = (debit: string) => ({ id, debit, credit: debit === shop ? cook : shop, amount: 5, pending: true })
  const results = async (json: unknown, key: string) => (await send(json, key)).body.results
  expect(await results(reserve(evil), stranger)).toEqual([{ id, status: 'created', reason: null }])
  const both = [reserve(shop), { id: `${id}-post`, pending_id: id, post: true }]
  expect(await results(both, owner)).toMatchObject([{ status: 'created' }, { status: 'created' }])
  expect(await results(both, owner)).toMatchObject([{ status: 'exists' }, { status: 'exists' }])
  expect(await send({ id: `${id}-void`, pending_id: id, void: true }, payee)).toMatchObject({
    body: { results: [{ reason: 'pending_transfer_already_posted' }] },
  })
  // The shop pays one of them and is paid by the other.
  expect(await results({ id: `${id}-back`, pending_id: id, void: true, debit: evil }, owner)).toMatchObject([{ status: 'created' }])
  expect(await send({ id: `${id}-steal`, pending_id: id, post: true, debit: shop }, stranger)).toMatchObject(problem(403))
})

test('ids of payments by agents are refused to clients', async () => {
  const [shop = '', cook = ''] = await scopes(nameOf('shop'), nameOf('cook'))
  const id = `agent:${crypto.randomUUID()}`
  expect(await call('/v1/ledger/mint', { json: { id, to: shop, amount: 10 } })).toMatchObject(problem(400))
  await call('/v1/ledger/mint', { json: { id: crypto.randomUUID(), to: shop, amount: 10 } })
  expect(await send({ id, debit: shop, credit: cook, amount: 1 })).toMatchObject(problem(400))
})
