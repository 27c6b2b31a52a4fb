import type { z } from 'zod'
import type { Context } from 'hono'
import type { dealReason, Deal } from '../contract/deal.ts'
import { LEDGER, type DealRefused } from '../contract/ledger-api.ts'
import type { Problem } from '../../../contract/problem.ts'
import { storeOf } from '../../../store/store.ts'
import { type AuthEnv, demandCoverage } from '../../../http/auth/middleware.ts'
import { resource, created, serve } from '../../../http/describe/operation.ts'
import { accept, cancel, find, list, offer, refund, reject } from '../operations/deals.ts'
import { conflict, forbidden, notFound } from '../../../http/problems/refusals.ts'
import { actorFor, demandActor, mayActFor, mayReadOne, ownKeyId, readableAccount } from './account-access.ts'
import { stateOfGoods } from './goods.ts'

type DealVerb = 'accept' | 'reject' | 'cancel' | 'refund'
type DealRequest = { params: { id: string }; body: z.infer<typeof dealReason> }
const deciding =
  (decided: DealVerb) =>
  (c: At, { params, body }: DealRequest) =>
    decide(c, decided, params.id, body)

export const dealRoutes = resource().openapiRoutes([
  serve(offer, async ({ env, var: { principal } }, { params: { id }, body: asked }) => {
    const { account: buyer, by } = await actorFor({ env, principal }, asked.buyer)
    demandCoverage(
      principal,
      (asked.scopes ?? []).map((scope) => ({ scope })),
    )
    const made = await env.LEDGER.getByName(LEDGER).offer(id, { ...asked, buyer }, by)
    if (!made.ok) throw refused(made)
    return created(made.created, made.deal)
  }),
  serve(accept, deciding('accept')),
  serve(reject, deciding('reject')),
  serve(cancel, deciding('cancel')),
  serve(refund, deciding('refund')),
  serve(find, (c, { params: { id } }) => dealFor(c, id)),
  serve(list, async ({ env, var: { principal } }, { query: { account: asked, limit, cursor } }) => {
    const account = await readableAccount({ env, principal }, asked)
    const { items, next } = await env.LEDGER.getByName(LEDGER).deals({ account, limit, after: cursor ?? null })
    return { items, next_cursor: next }
  }),
])

type At = Pick<Context<AuthEnv>, 'env' | 'var'>

async function dealFor({ env, var: { principal } }: At, id: string): Promise<Deal> {
  const found = await env.LEDGER.getByName(LEDGER).deal(id)
  const isReader = found && (await mayReadOne({ env, principal }, [found.seller, found.buyer]))
  if (!isReader) throw notFound(`There is no deal ${id} of an account that this key may read.`)
  return found
}

async function decide(c: At, decided: DealVerb, id: string, { reason }: { reason?: string | undefined } = {}): Promise<Deal> {
  const { seller, buyer, artifact } = await dealFor(c, id)
  const { env } = c
  const { principal } = c.var
  // Both sides may ask for a refund: the Ledger knows which one may have it.
  const account = decided === 'cancel' || (decided === 'refund' && !(await mayActFor({ env, principal }, seller))) ? buyer : seller
  await demandActor({ env, principal }, account)
  const key_id = ownKeyId(principal, account)
  const goods_state = decided === 'accept' ? await stateOfGoods(storeOf(env), artifact) : undefined
  const made = await env.LEDGER.getByName(LEDGER).decide(id, decided, { account, key_id, reason, goods_state })
  if (!made.ok) throw refused(made)
  return made.deal
}

function refused({ reason, detail }: DealRefused): Problem {
  if (reason === 'not_found') return notFound(detail)
  if (reason === 'not_allowed') return forbidden(detail)
  return conflict(reason.replaceAll('_', '-'), detail)
}
