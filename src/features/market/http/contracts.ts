import type { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { LEDGER, type ContractRefused, type LedgerCaller } from '../contract/ledger-api.ts'
import type { contractReason, Contract } from '../contract/service.ts'
import type { Problem } from '../../../contract/problem.ts'
import { scopeOfOwner } from '../../../contract/reflex.ts'
import { scopeExists } from '../../../store/scopes.ts'
import { storeOf } from '../../../store/store.ts'
import type { AuthEnv } from '../../../http/auth/middleware.ts'
import { resource, created, serve } from '../../../http/describe/operation.ts'
import { accept, dispute, end, find, list, propose, reject } from '../operations/contracts.ts'
import { conflict, notFound } from '../../../http/problems/refusals.ts'
import { actorFor, demandActor, mayActFor, mayReadOne, readableAccount } from './account-access.ts'

type ContractVerb = 'accept' | 'reject' | 'end' | 'dispute'
type Reason = z.infer<typeof contractReason>
type ContractRequest = { params: { id: string }; body: Reason }
const deciding =
  (decided: ContractVerb) =>
  (c: At, { params, body }: ContractRequest) =>
    decide(c, decided, params.id, body)

export const contractRoutes = resource().openapiRoutes([
  serve(propose, async (c, { body: asked }) => {
    const made = await c.env.LEDGER.getByName(LEDGER).propose(asked, await proposerFor(c, asked))
    if (!made.ok) throw refused(made)
    return created(made.created, made.contract)
  }),
  serve(accept, deciding('accept')),
  serve(reject, deciding('reject')),
  serve(end, deciding('end')),
  serve(dispute, deciding('dispute')),
  serve(find, (c, { params: { id } }) => contractFor(c, id)),
  serve(list, async ({ env, var: { principal } }, { query: { account: asked, limit, cursor } }) => {
    const account = await readableAccount({ env, principal }, asked)
    const { items, next } = await env.LEDGER.getByName(LEDGER).contracts({ account, limit, after: cursor ?? null })
    return { items, next_cursor: next }
  }),
])

type At = Pick<Context<AuthEnv>, 'env' | 'var'>

/** Vouches for the scope of the counterparty as well: its account is opened by the first call. */
async function proposerFor({ env, var: { principal } }: At, { proposer, counterparty }: Parties): Promise<LedgerCaller> {
  const { by: caller } = await actorFor({ env, principal }, proposer)
  const other = scopeOfOwner(counterparty)
  const exists = other !== null && (await scopeExists(storeOf(env), other))
  return exists ? { ...caller, opens: [...caller.opens, counterparty] } : caller
}

type Parties = Pick<Contract, 'proposer' | 'counterparty'>

async function contractFor({ env, var: { principal } }: At, id: string): Promise<Contract> {
  const found = await env.LEDGER.getByName(LEDGER).contract(id)
  const isReader = found && (await mayReadOne({ env, principal }, [found.proposer, found.counterparty]))
  if (!isReader) throw notFound(`There is no contract ${id} of an account that this key may read.`)
  return found
}

async function decide(c: At, decided: ContractVerb, id: string, by: Reason = {}): Promise<Contract> {
  const { proposer, counterparty } = await contractFor(c, id)
  const { env } = c
  const { principal } = c.var
  const either = decided === 'end' || decided === 'dispute'
  const account = either && (await mayActFor({ env, principal }, proposer)) ? proposer : counterparty
  await demandActor({ env, principal }, account)
  const made = await env.LEDGER.getByName(LEDGER).decideContract(id, decided, { account, ...by })
  if (!made.ok) throw refused(made)
  return made.contract
}

function refused({ reason, detail }: ContractRefused): Problem {
  return reason === 'not_found' ? notFound(detail) : conflict(reason.replaceAll('_', '-'), detail)
}
