import type { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { LEDGER, type ContractRefused, type LedgerCaller } from '../../contract/market/ledger-api.ts'
import { contract, contractReason, newContract, type Contract } from '../../contract/market/service.ts'
import type { Problem } from '../../contract/problem.ts'
import { scopeOfOwner } from '../../contract/reflex.ts'
import { scopeExists } from '../../store/scopes.ts'
import { storeOf } from '../../store/store.ts'
import type { AuthEnv } from '../auth/middleware.ts'
import { guard, idPath, json, jsonRequest, problems, resource, routes } from '../describe/describe.ts'
import { paged } from '../../contract/paging.ts'
import { conflict, notFound } from '../problems/refusals.ts'
import { accountQuery, actorFor, demandActor, mayActFor, mayReadOne, readableAccount } from './account-access.ts'

const route = routes('Market')

const propose = route('post /v1/market/contracts', 'proposeContract', 'Propose a contract', {
  description:
    'The proposer pays the counterparty for each call of its skill or reflex, up to a number of calls. The same contract again changes nothing. ' +
    'For operators of the scope that pays.',
  ...guard({ roles: ['operator'], body: 'json' }),
  request: {
    body: jsonRequest(newContract, {
      id: 'contract-1',
      proposer: 'scope:shop',
      counterparty: 'scope:cook',
      service: 'reflex:menu',
      price_per_invocation: 2,
      limit: 100,
    }),
  },
  responses: {
    200: json(contract, 'The contract, which existed already.'),
    201: json(contract, 'The contract, as proposed.'),
    ...problems(400, 404, 409, 413, 415),
  },
})

const meanings = {
  accept: ['Accept a contract', 'For the counterparty. The proposer may call from now on.'],
  reject: ['Reject a contract', 'For the counterparty.'],
  end: ['End a contract', 'For both sides. A call that has begun is still settled.'],
  dispute: [
    'Dispute a contract',
    'For both sides. There are no further calls; the dispute has the traces that you name, and those of the latest calls, for a person to judge. No money moves.',
  ],
} as const

type Decision = keyof typeof meanings

const decision = <const Name extends Decision>(name: Name) =>
  route(`post /v1/market/contracts/{id}/${name}`, `${name}Contract`, meanings[name][0], {
    description: meanings[name][1],
    ...guard({ roles: ['operator'], body: 'optional' }),
    request: { params: idPath, body: { ...jsonRequest(contractReason, { reason: 'The service answered wrongly.' }), required: false } },
    responses: { 200: json(contract, 'The contract.'), ...problems(400, 404, 409, 413, 415) },
  })

const find = route('get /v1/market/contracts/{id}', 'getContract', 'Get a contract', {
  description: 'For those who may read the account of one of its sides.',
  ...guard({ roles: ['viewer'] }),
  request: { params: idPath },
  responses: { 200: json(contract, 'The contract with its disputes.'), ...problems(400, 404) },
})

const list = route('get /v1/market/contracts', 'listContracts', 'List the contracts of an account, oldest first', {
  ...guard({ roles: ['viewer'] }),
  request: { query: accountQuery },
  responses: { 200: json(paged(contract), 'A page.'), ...problems(400) },
})

export const contractRoutes = resource()
  .openapi(propose, async (c) => {
    const asked = c.req.valid('json')
    const made = await c.env.LEDGER.getByName(LEDGER).propose(asked, await proposerFor(c, asked))
    if (!made.ok) throw refused(made)
    return made.created ? c.json(made.contract, 201) : c.json(made.contract, 200)
  })
  .openapi(decision('accept'), async (c) => c.json(await decide(c, 'accept', c.req.valid('param').id, c.req.valid('json')), 200))
  .openapi(decision('reject'), async (c) => c.json(await decide(c, 'reject', c.req.valid('param').id, c.req.valid('json')), 200))
  .openapi(decision('end'), async (c) => c.json(await decide(c, 'end', c.req.valid('param').id, c.req.valid('json')), 200))
  .openapi(decision('dispute'), async (c) => c.json(await decide(c, 'dispute', c.req.valid('param').id, c.req.valid('json')), 200))
  .openapi(find, async (c) => c.json(await contractFor(c, c.req.valid('param').id), 200))
  .openapi(list, async (c) => {
    const { account: asked, limit, cursor } = c.req.valid('query')
    const account = await readableAccount({ env: c.env, principal: c.var.principal }, asked)
    const { items, next } = await c.env.LEDGER.getByName(LEDGER).contracts({ account, limit, after: cursor ?? null })
    return c.json({ items, next_cursor: next }, 200)
  })

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

async function decide(c: At, decided: Decision, id: string, by: z.infer<typeof contractReason> = {}): Promise<Contract> {
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
