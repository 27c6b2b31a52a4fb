import { z } from '@hono/zod-openapi'
import { warn } from '../../base/warn.ts'
import { ledgerReport, reportGroups } from '../../contract/market/account.ts'
import { LEDGER } from '../../contract/market/ledger-api.ts'
import { transfer, type Transfer } from '../../contract/market/transfer.ts'
import type { Env } from '../../env.ts'
import { copiedStatement, reportOf } from '../../store/market/ledger.ts'
import { storeOf } from '../../store/store.ts'
import { guard, json, problems, resource, routes } from '../describe/describe.ts'
import { paged } from '../../contract/paging.ts'
import { invalid, unavailable } from '../problems/refusals.ts'
import { readableAccount } from './account-access.ts'
import { accountPath, noAccount, pageQuery } from './ledger.ts'

const route = routes('Ledger')
const DAY_MS = 86_400_000
const STANDARD_DAYS = 30

const statement = route('get /v1/ledger/accounts/{id}/statement', 'getStatement', 'List the transfers of an account, oldest first', {
  description: 'From the copy in D1, and what is newer from the ledger itself: a transfer that was answered is in it.',
  ...guard({ roles: ['viewer'] }),
  request: { params: accountPath, query: pageQuery },
  responses: { 200: json(paged(transfer), 'A page.'), ...problems(400, 404) },
})

const time = z.iso.datetime({ offset: true }).optional()

const report = route('get /v1/ledger/accounts/{id}/report', 'getLedgerReport', 'Sum the payments of an account', {
  description:
    'By day, code or counterparty, at most 1,000 groups: the newest days, else the largest sums. From the copy in D1, which follows within about a second; `as_of` says up to where.',
  ...guard({ roles: ['viewer'] }),
  request: {
    params: accountPath,
    query: z.object({
      by: z.enum(reportGroups).default('day').describe('What the sums are grouped by.'),
      since: time.describe('30 days before `until`, if unset.'),
      until: time.describe('Now, if unset.'),
    }),
  },
  responses: { 200: json(ledgerReport, 'The sums.'), ...problems(400, 404) },
})

export const statementRoutes = resource()
  .openapi(statement, async (c) => {
    const id = await readableAccount({ env: c.env, principal: c.var.principal }, c.req.valid('param').id)
    const { limit, cursor, after } = c.req.valid('query')
    const from = cursor ?? after ?? '0'
    if (!/^\d{1,15}$/.test(from)) throw invalid('Pass the next_cursor of the previous page.')
    await demandAccount(c.env, id)
    return c.json(await statementOf(c.env, id, { after: Number(from), limit }), 200)
  })
  .openapi(report, async (c) => {
    const account = await readableAccount({ env: c.env, principal: c.var.principal }, c.req.valid('param').id)
    await demandAccount(c.env, account)
    const { by, ...asked } = c.req.valid('query')
    const until = asked.until === undefined ? Date.now() : Date.parse(asked.until)
    const since = asked.since === undefined ? until - STANDARD_DAYS * DAY_MS : Date.parse(asked.since)
    const range = { since: new Date(since).toISOString(), until: new Date(until).toISOString() }
    return c.json({ account, by, ...range, ...(await reportOf(storeOf(c.env), { account, by, ...range })) }, 200)
  })

async function demandAccount(env: Env, id: string): Promise<void> {
  if (!(await env.LEDGER.getByName(LEDGER).account(id))) throw noAccount(id)
}

type Asked = { after: number; limit: number }

/** The copy is a beginning of the history, of which the Ledger has the end. */
async function statementOf(env: Env, account: string, { after, limit }: Asked): Promise<{ items: Transfer[]; next_cursor: string | null }> {
  const copied = await copiedStatement(storeOf(env), account, { after, limit: limit + 1 }).catch(async (error: unknown) => {
    warn({ message: 'D1 has no statement: the ledger gives it', account, error })
    if ((await env.LEDGER.getByName(LEDGER).departedUpTo()) > after)
      throw unavailable('The older part of the statement is in D1, which does not answer. Send the request again.')
    return []
  })
  const newer = { after: String(copied.at(-1)?.seq ?? after), limit: limit + 1 - copied.length }
  const rest = newer.limit > 0 ? (await env.LEDGER.getByName(LEDGER).statement(account, newer)).items : []
  const found = [...copied, ...rest]
  const items = found.slice(0, limit)
  return { items, next_cursor: found.length > limit ? String(items.at(-1)?.seq) : null }
}
