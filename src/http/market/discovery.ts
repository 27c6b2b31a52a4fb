import { withComputing } from '../auth/computing.ts'
import { z } from '@hono/zod-openapi'
import { storedReflex, storedSkill } from '../../artifacts/platform.ts'
import { LEDGER } from '../../contract/market/ledger-api.ts'
import { artifactIn, artifactReference, foundListing, goodsKinds } from '../../contract/market/listing.ts'
import { accountId } from '../../contract/market/transfer.ts'
import { newTrial, trialReport } from '../../contract/market/trial.ts'
import { measureListings } from '../../market/discovery/measure.ts'
import { evaluateSkill } from '../../market/discovery/skill-trial.ts'
import { evaluateReflex, tryListing, type TrialGoods, type TrialRefused } from '../../market/discovery/trial.ts'
import { isolateSandbox } from '../../reflexes/isolate-sandbox.ts'
import { listingSorts, searchListings, type ListingPlace } from '../../store/market/listings.ts'
import { manifestSchema } from '../../skills/manifest/manifest.ts'
import { storeOf } from '../../store/store.ts'
import { demandRole } from '../auth/middleware.ts'
import { guard, idPath, json, jsonRequest, problems, resource, routes } from '../describe/describe.ts'
import { pageLimit, paged } from '../../contract/paging.ts'
import type { Problem } from '../../contract/problem.ts'
import { conflict, demandCoverage, invalid, notFound, tooMany } from '../problems/refusals.ts'

const route = routes('Market')
const LONGEST_MS = 30 * 86_400_000

const cursor = z
  .string()
  .regex(/^-?\d[\d.e+-]{0,30}~.{1,128}$/, 'pass the next_cursor of the previous page')
  .transform((text): ListingPlace => {
    const at = text.indexOf('~')
    return { place: Number(text.slice(0, at)), id: text.slice(at + 1) }
  })

const search = route('get /v1/market/listings', 'searchListings', 'Search listings', {
  description:
    'Open listings with figures that the platform measured: those of the seller are not asked. The ranking gives its reasons with their points. ' +
    'Figures are at most 10 s old up to 200 open listings; `measured_at` says how old. Figures are sums over all scopes, and name none.',
  ...guard({ roles: ['viewer'] }),
  request: {
    query: z.object({
      q: z
        .string()
        .min(1)
        .max(200)
        .optional()
        .describe('Words, all of which are in the id, the description, the event types or the tools.'),
      kind: z.enum(goodsKinds).optional().describe('The goods: a licence, a copy or the ownership.'),
      type: z.string().min(1).max(200).optional().describe('An event type that it handles, as listed or as measured.'),
      tool: z.string().min(1).max(200).optional().describe('A tool that it calls.'),
      artifact: artifactReference.optional().describe('`reflex:ID@VERSION` or `skill:ID@VERSION`.'),
      seller: accountId.optional(),
      max_price: z.coerce.number<string>().int().min(1).optional().describe('In scrip.'),
      sort: z.enum(listingSorts).default('rank').describe('`saved`: by money saved per 1,000 events. `agreement`: by its lower bound.'),
      limit: pageLimit(100, 20),
      cursor: cursor.optional().openapi({ type: 'string' }),
    }),
  },
  responses: { 200: json(paged(foundListing), 'A page.'), ...problems(400) },
})

const trial = route('post /v1/market/listings/{id}/try', 'tryListing', 'Try listed goods on your own recordings', {
  description:
    'Runs a reflex, or asks the gate of a skill, on what a scope recorded, without acting, and compares it with the decisions made at the time. Shows neither its code nor the arguments of its actions. ' +
    'At most 5 trials an hour and 20 a day for each scope and listing. Its account pays the fee if there is one, which needs the role `operator`.',
  ...guard({ roles: ['viewer'], body: 'json' }),
  request: { params: idPath, body: jsonRequest(newTrial, { scope: 'shop/berlin', since: '2026-11-21T00:00:00Z' }) },
  responses: { 200: json(trialReport, 'The evaluation.'), ...problems(400, 404, 409, 413, 415) },
})

export const discoveryRoutes = resource()
  .openapi(search, async (c) => {
    const { cursor: after, ...query } = c.req.valid('query')
    const [db, now] = [storeOf(c.env), Date.now()]
    await measureListings(db, now)
    const { items, next } = await searchListings(db, { ...query, after, now })
    return c.json({ items, next_cursor: next && `${next.place}~${next.id}` }, 200)
  })
  .openapi(trial, async (c) => {
    const { id: listing_id } = c.req.valid('param')
    const { scope, since, id = crypto.randomUUID() } = c.req.valid('json')
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
    return c.json(tried.report, 200)
  })

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
