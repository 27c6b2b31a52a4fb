import { withComputing } from '../../../http/auth/computing.ts'
import { storedReflex, storedSkill } from '../../../artifacts/platform.ts'
import { LEDGER } from '../contract/ledger-api.ts'
import { artifactIn } from '../contract/listing.ts'
import { search, tryOut } from '../operations/listings.ts'
import { measureListings } from '../discovery/measure.ts'
import { evaluateSkill } from '../discovery/skill-trial.ts'
import { evaluateReflex, tryListing, type TrialGoods, type TrialRefused } from '../discovery/trial.ts'
import { isolateSandbox } from '../../../reflexes/isolate-sandbox.ts'
import { searchListings } from '../store/listings.ts'
import { manifestSchema } from '../../../skills/manifest/manifest.ts'
import { storeOf } from '../../../store/store.ts'
import { demandRole, demandCoverage } from '../../../http/auth/middleware.ts'
import { resource, serve } from '../../../http/describe/operation.ts'
import type { Problem } from '../../../contract/problem.ts'
import { conflict, invalid, notFound, tooMany } from '../../../http/problems/refusals.ts'

const LONGEST_MS = 30 * 86_400_000

export const discoveryRoutes = resource().openapiRoutes([
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
