import { expect } from 'vitest'
import type { DatabaseSync } from 'node:sqlite'
import type { Account, LedgerAudit } from '../../../src/features/market/contract/account.ts'
import type { Deal } from '../../../src/features/market/contract/deal.ts'
import type { Transfer, TransferResult } from '../../../src/features/market/contract/transfer.ts'
import { clientId } from '../../../src/features/market/ledger/ids.ts'
import { read } from './clients.ts'
import type { KillableServer } from './server.ts'
import { ACCOUNTS, type Answered } from './traffic.ts'

type Made = Pick<Transfer, 'seq' | 'id' | 'kind' | 'debit' | 'credit' | 'amount' | 'pending_id'>
type Books = { transfers: Map<string, Made>; deals: Map<string, Deal>; accounts: Map<string, Account>; audit: LedgerAudit }

/** The history as the Ledger's file has it, which the statements repeat; all else over HTTP. */
export async function readBooks(server: KillableServer, ledger: DatabaseSync): Promise<Books> {
  const whole = async <Item>(path: string): Promise<Item[]> => {
    const items: Item[] = []
    for (let cursor: string | null = ''; cursor !== null;) {
      const page: { items: Item[]; next_cursor: string | null } = await read(server, `${path}limit=100${cursor && `&cursor=${cursor}`}`)
      items.push(...page.items)
      cursor = page.next_cursor
    }
    return items
  }
  const accounts = await whole<Account>('/v1/ledger/accounts?')
  const history = ledger.prepare('SELECT * FROM transfers ORDER BY seq').all() as Made[]
  const statements = await Promise.all(
    accounts.map(({ id }) => whole<Transfer>(`/v1/ledger/accounts/${encodeURIComponent(id)}/statement?`)),
  )
  const named = history.map(({ seq, id, debit }) => `${seq} ${clientId(id, debit)}`)
  expect(new Set(statements.flat().map(({ seq, id }) => `${seq} ${id}`))).toEqual(new Set(named))
  const deals = await Promise.all(ACCOUNTS.map((account) => whole<Deal>(`/v1/market/deals?account=${encodeURIComponent(account)}&`)))
  return {
    transfers: new Map(history.map((transfer) => [transfer.id, transfer])),
    deals: new Map(deals.flat().map((deal) => [deal.deal_id, deal])),
    accounts: new Map(accounts.map((account) => [account.id, account])),
    audit: await read<LedgerAudit>(server, '/v1/ledger/audit'),
  }
}

export const resultsOf = ({ answer }: Answered): TransferResult[] => (answer as { results?: TransferResult[] }).results ?? []

/** The ids that a request made, with the accounts that pay, to which they belong. */
function createdBy(one: Answered): string[] {
  const asked = [one.body ?? []].flat() as { debit?: string; pending_id?: string }[]
  return resultsOf(one).flatMap(({ id, status }, index) => {
    const { debit = 'genesis', pending_id } = asked[index] ?? {}
    return status === 'failed' ? [] : [`${id} ${pending_id === undefined ? debit : 'ends'}`]
  })
}

/** The history has what was answered as created and nothing else; each pending ended once. */
export function checkHistory({ transfers, accounts, audit }: Books, answered: readonly Answered[]): void {
  const created = answered.flatMap((one) => (one.kind === 'transfers' ? createdBy(one) : []))
  const own = [...transfers.values()].filter(({ id }) => !/^(?:deal|timeout):/.test(id))
  const named = own.map(({ id, debit, pending_id }) => `${clientId(id, debit)} ${pending_id === null ? debit : 'ends'}`)
  expect(new Set(named)).toEqual(new Set(created))
  expect(audit.transfers).toBe(transfers.size)
  const history = [...transfers.values()]
  const ends = history.flatMap(({ pending_id }) => pending_id ?? [])
  expect(new Set(ends).size).toBe(ends.length)
  const open = history.filter(({ id, kind }) => kind === 'pending' && !ends.includes(id))
  expect(audit.open_pendings).toBe(open.length)
  for (const { id, available, balance } of accounts.values()) {
    const moved = history.filter(({ kind }) => kind === 'single' || kind === 'post')
    const posted = moved.reduce((sum, { debit, credit, amount }) => sum + (credit === id ? amount : 0) - (debit === id ? amount : 0), 0)
    const reserved = open.reduce((sum, { debit, amount }) => sum + (debit === id ? amount : 0), 0)
    expect({ id, balance, available }).toEqual({ id, balance: posted, available: posted - reserved })
    if (id !== 'genesis') expect(available).toBeGreaterThanOrEqual(0)
  }
}

const AFTER: Record<string, readonly Deal['status'][]> = {
  accept: ['accepted', 'refunded', 'settled'],
  reject: ['rejected'],
  cancel: ['cancelled'],
  refund: ['refunded'],
}

/** Each answered offer and decision stands, and a deal is delivered if and only if it is paid. */
export function checkDeals({ transfers, deals, accounts }: Books, answered: readonly Answered[]): void {
  const offered = answered.filter(({ kind, status }) => kind === 'offer' && status < 300)
  expect(new Set(deals.keys())).toEqual(new Set(offered.map(({ answer }) => (answer as Deal).deal_id)))
  for (const { kind, status, path, answer } of answered) {
    if (kind !== 'decide' || status !== 200) continue
    const { deal_id } = answer as Deal
    expect(AFTER[path.split('/').at(-1) ?? ''], `${path} was answered`).toContain(deals.get(deal_id)?.status)
  }
  let held = 0
  for (const deal of deals.values()) {
    const { deal_id, price, delivery, status, paid } = deal
    const of = [...transfers.values()].filter(({ id }) => id.startsWith(`deal:${deal_id}:`))
    const sum = (part: string) =>
      of.filter(({ id }) => id.startsWith(`deal:${deal_id}:${part}`)).reduce((all, { amount }) => all + amount, 0)
    const sold = AFTER['accept']?.includes(status) ?? false
    expect({ deal_id, sold, paid: transfers.has(`deal:${deal_id}:post`) }).toEqual({
      deal_id,
      sold: delivery !== null,
      paid: delivery !== null,
    })
    expect({ deal_id, paid: sum('pay'), held: sum('post') - sum('pay') - sum('refund') }).toEqual({ deal_id, paid, held: deal.held })
    if (sold) expect(sum('post')).toBe(price)
    expect(new Set(deal.history.map(({ state }) => state)).size).toBe(deal.history.length)
    held += deal.held
  }
  expect(accounts.get('escrow')).toMatchObject({ balance: held })
}

/** D1 has what was delivered, and nothing else. */
export function checkDelivered({ deals, transfers }: Books, database: DatabaseSync, answered: readonly Answered[]): void {
  const rows = <Row>(sql: string) => database.prepare(sql).all() as Row[]
  const delivered = [...deals.values()].filter(({ delivery }) => delivery !== null)
  const licences = delivered.filter(({ kind }) => kind === 'licence')
  const rights = rows<{ deal_id: string; pattern: string; hash: string; in_use: number }>(
    'SELECT deal_id, pattern, hash, in_use FROM entitlements WHERE deal_id IN (SELECT deal_id FROM entitlements) ORDER BY deal_id, pattern',
  ).filter(({ deal_id }) => deals.get(deal_id)?.kind !== 'ownership')
  const expected = licences.flatMap(({ deal_id, hash, scopes, delivery }) =>
    (scopes ?? []).map((pattern) => ({ deal_id, pattern, hash, in_use: delivery?.in_use ? 1 : 0 })),
  )
  const key = ({ deal_id, pattern }: { deal_id: string; pattern: string }) => `${deal_id} ${pattern}`
  expect(new Map(rights.map((right) => [key(right), { ...right }]))).toEqual(new Map(expected.map((right) => [key(right), right])))

  const registered = answered.filter(({ kind, status }) => kind === 'register' && status < 300)
  const owners = new Map(registered.map(({ body }) => [(body as { id: string }).id, 'maker']))
  const bought = delivered.filter(({ kind }) => kind !== 'licence')
  const paidAt = ({ deal_id }: Deal): number => transfers.get(`deal:${deal_id}:post`)?.seq ?? 0
  for (const { delivery, buyer } of bought.sort((one, other) => paidAt(one) - paidAt(other)))
    owners.set(delivery?.artifact.replace(/^reflex:|@\d+$/g, '') ?? '', buyer.replace(/^key:/, ''))
  const artifacts = rows<{ id: string; owner: string }>("SELECT id, owner FROM artifacts WHERE kind = 'reflex'")
  expect(new Map(artifacts.map(({ id, owner }) => [id, owner]))).toEqual(owners)

  const copied = rows<{ n: number }>('SELECT count(*) AS n FROM ledger_transfers')
  expect(copied[0]?.n).toBe(transfers.size)
  expect(rows<{ n: number }>('SELECT count(*) AS n FROM dead_letters')).toMatchObject([{ n: 0 }])
}
