import { warn } from '../../../base/warn.ts'
import { LEDGER } from '../contract/ledger-api.ts'
import type { Transfer } from '../contract/transfer.ts'
import { report, statement } from '../operations/ledger.ts'
import type { Env } from '../../../env.ts'
import { copiedStatement, reportOf } from '../store/ledger.ts'
import { storeOf } from '../../../store/store.ts'
import { resource, serve } from '../../../http/describe/operation.ts'
import { invalid, unavailable } from '../../../http/problems/refusals.ts'
import { readableAccount } from './account-access.ts'
import { noAccount } from './ledger.ts'

const DAY_MS = 86_400_000
const STANDARD_DAYS = 30

export const statementRoutes = resource().openapiRoutes([
  serve(statement, async ({ env, var: { principal } }, { params, query: { limit, cursor, after } }) => {
    const id = await readableAccount({ env, principal }, params.id)
    const from = cursor ?? after ?? '0'
    if (!/^\d{1,15}$/.test(from)) throw invalid('Pass the next_cursor of the previous page.')
    await demandAccount(env, id)
    return statementOf(env, id, { after: Number(from), limit })
  }),
  serve(report, async ({ env, var: { principal } }, { params, query: { by, ...asked } }) => {
    const account = await readableAccount({ env, principal }, params.id)
    await demandAccount(env, account)
    const until = asked.until === undefined ? Date.now() : Date.parse(asked.until)
    const since = asked.since === undefined ? until - STANDARD_DAYS * DAY_MS : Date.parse(asked.since)
    const range = { since: new Date(since).toISOString(), until: new Date(until).toISOString() }
    return { account, by, ...range, ...(await reportOf(storeOf(env), { account, by, ...range })) }
  }),
])

async function demandAccount(env: Env, id: string): Promise<void> {
  if (!(await env.LEDGER.getByName(LEDGER).account(id))) throw noAccount(id)
}

type StatementsQuery = { after: number; limit: number }

/** The copy is a beginning of the history, of which the Ledger has the end. */
async function statementOf(
  env: Env,
  account: string,
  { after, limit }: StatementsQuery,
): Promise<{ items: Transfer[]; next_cursor: string | null }> {
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
