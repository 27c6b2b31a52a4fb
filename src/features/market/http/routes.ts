import { resource, created, serve } from '../../../http/describe/operation.ts'
import { ledgerRoutes, noAccount } from './ledger.ts'
import type { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { LEDGER, type ContractRefused, type LedgerCaller, type DealRefused } from '../contract/ledger-api.ts'
import type { contractReason, Contract } from '../contract/service.ts'
import type { Problem } from '../../../contract/problem.ts'
import { scopeOfOwner } from '../../../contract/reflex.ts'
import { scopeExists } from '../../../store/scopes.ts'
import { storeOf } from '../../../store/store.ts'
import { type AuthEnv, demandCoverage, demandRole } from '../../../http/auth/middleware.ts'
import { accept, dispute, end, find, list, propose, reject } from '../operations/contracts.ts'
import { conflict, notFound, forbidden, invalid, tooMany, unavailable } from '../../../http/problems/refusals.ts'
import { actorFor, demandActor, mayActFor, mayReadOne, readableAccount, ownKeyId } from './account-access.ts'
import type { z } from 'zod'
import type { dealReason, Deal } from '../contract/deal.ts'
import { accept, cancel, find, list, offer, refund, reject } from '../operations/deals.ts'
import { stateOfGoods, demandGoods, type FoundGoods } from './goods.ts'
import { withComputing } from '../../../http/auth/computing.ts'
import { storedReflex, storedSkill } from '../../../artifacts/platform.ts'
import { artifactIn } from '../contract/listing.ts'
import { search, tryOut, close, create, find } from '../operations/listings.ts'
import { measureListings, measureListing } from '../discovery/measure.ts'
import { evaluateSkill } from '../discovery/skill-trial.ts'
import { evaluateReflex, tryListing, type TrialGoods, type TrialRefused } from '../discovery/trial.ts'
import { isolateSandbox } from '../../../reflexes/isolate-sandbox.ts'
import { searchListings } from '../store/listings.ts'
import { manifestSchema } from '../../../skills/manifest/manifest.ts'
import { sell, type SaleRefused } from '../goods/sell.ts'
import { warn } from '../../../base/warn.ts'
import type { Transfer } from '../contract/transfer.ts'
import { report, statement } from '../operations/ledger.ts'
import type { Env } from '../../../env.ts'
import { copiedStatement, reportOf } from '../store/ledger.ts'

const DAY_MS = 86_400_000
const STANDARD_DAYS = 30

const statementRoutes = resource().openapiRoutes([
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

const listingRoutes = resource().openapiRoutes([
  serve(create, async ({ env, var: { principal } }, { body: asked }) => {
    const { account: seller, by } = await actorFor({ env, principal }, asked.seller)
    const found = await demandGoods(storeOf(env), asked.artifact, principal)
    demandOwner({ asked: asked.seller, seller }, found, by)
    const made = await sell(env, { ...asked, seller, listing_id: crypto.randomUUID() }, found, by)
    if (!made.ok) throw refused(made)
    return made.listing
  }),
  serve(find, async ({ env }, { params: { id } }) => {
    const found = await env.LEDGER.getByName(LEDGER).listing(id)
    if (!found) throw notFound(`There is no listing ${id}.`)
    return measureListing(storeOf(env), found, Date.now())
  }),
  serve(close, async ({ env, var: { principal } }, { params: { id } }) => {
    const ledger = env.LEDGER.getByName(LEDGER)
    const found = await ledger.listing(id)
    if (!found) throw notFound(`There is no listing ${id}.`)
    await demandActor({ env, principal }, found.seller)
    const closed = await ledger.unlist(id, { reason: `closed by ${principal.name}`, key_id: ownKeyId(principal, found.seller) })
    if (!closed.ok) throw refused(closed)
    return closed.listing
  }),
])

/** The seller is the account of the owner: a scope, or the key with its id. */
function demandOwner(
  { asked, seller }: { asked: string; seller: string },
  { owner, kind, id }: FoundGoods,
  { owners }: LedgerCaller,
): void {
  const is_scope = scopeOfOwner(owner.owner_id) !== null
  if (is_scope ? seller === owner.owner_id : owners?.[seller] === owner.owner_id) return
  const account = is_scope ? owner.owner_id : `key:${owner.owner}`
  throw forbidden(`The ${kind} ${id} belongs to ${account === asked ? 'another key of this name' : account}.`)
}

function refused(sale: SaleRefused): Problem {
  const { reason, detail } = sale
  if (reason === 'terms') return invalid(detail, [{ path: sale.term, message: sale.message }])
  if (reason === 'not_allowed') return forbidden(detail)
  return reason === 'not_found' ? notFound(detail) : conflict(reason.replaceAll('_', '-'), detail)
}

const LONGEST_MS = 30 * 86_400_000

const discoveryRoutes = resource().openapiRoutes([
  serve(search, async (c, { query: { cursor: after, ...query } }) => {
    const db = storeOf(c.env)
    const now = Date.now()
    await measureListings(db, now)
    const { items, next } = await searchListings(db, { ...query, after, now })
    return { items, next_cursor: next && `${next.place}~${next.id}` }
  }),
  serve(tryOut, async (c, { params: { id: listing_id }, body: { scope, since, id = crypto.randomUUID() } }) => {
    const now = Date.now()
    demandCoverage(c.var.principal, [{ scope }])
    if (Date.parse(since) < now - LONGEST_MS || Date.parse(since) > now) throw invalid('`since` is a time of the last 30 days.')
    const ledger = c.env.LEDGER.getByName(LEDGER)
    const listing = await ledger.listing(listing_id)
    if (!listing) throw notFound(`There is no listing ${listing_id}.`)
    if (listing.state !== 'open') throw conflict('not_open', `The listing ${listing_id} is ${listing.state}.`)
    if ((listing.terms.trial_fee ?? 0) > 0) demandRole(c.var.principal, 'operator')
    const db = storeOf(c.env)
    const goods = await trialGoods(db, listing.artifact)
    const parts = { db, ledger, scope: c.env.SCOPE.getByName(scope), sandbox: isolateSandbox(), now }
    const tried = await withComputing(c.var.principal, (computing) =>
      tryListing({ ...parts, computing }, { listing, goods, scope, since, id }),
    )
    if (!tried.ok) throw refused(tried)
    return tried.report
  }),
])

async function trialGoods(db: D1Database, artifact: string): Promise<TrialGoods | null> {
  const { kind, id, version } = artifactIn(artifact)
  if (kind === 'reflex') {
    const program = await storedReflex(db, id, Number(version))
    if (!program) return null
    const evaluate: TrialGoods['evaluate'] = (parts, since) => evaluateReflex(parts, program, since)
    return { hash: program.hash, ended: program.state === 'retired', evaluate }
  }
  const found = await storedSkill(db, id, version)
  const read = manifestSchema.safeParse(found?.manifest)
  if (!found || !read.success) return null
  const evaluate: TrialGoods['evaluate'] = ({ scope }, since) => evaluateSkill(scope, read.data, since)
  return { hash: found.hash, ended: found.state === 'deprecated', evaluate }
}

function refused({ reason, detail }: TrialRefused): Problem {
  if (reason === 'not_found') return notFound(detail)
  if (reason === 'limit') return tooMany('too-many-requests', detail, 600)
  return conflict(reason, detail)
}

type DealVerb = 'accept' | 'reject' | 'cancel' | 'refund'
type DealRequest = { params: { id: string }; body: z.infer<typeof dealReason> }
const deciding =
  (decided: DealVerb) =>
  (c: At, { params, body }: DealRequest) =>
    decide(c, decided, params.id, body)

const dealRoutes = resource().openapiRoutes([
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

type ContractVerb = 'accept' | 'reject' | 'end' | 'dispute'
type Reason = z.infer<typeof contractReason>
type ContractRequest = { params: { id: string }; body: Reason }
const deciding =
  (decided: ContractVerb) =>
  (c: At, { params, body }: ContractRequest) =>
    decide(c, decided, params.id, body)

const contractRoutes = resource().openapiRoutes([
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

export const marketRoutes = resource()
  .route('/', ledgerRoutes)
  .route('/', statementRoutes)
  .route('/', discoveryRoutes)
  .route('/', listingRoutes)
  .route('/', dealRoutes)
  .route('/', contractRoutes)
