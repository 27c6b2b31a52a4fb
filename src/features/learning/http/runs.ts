import type { Context } from 'hono'
import { lookUpReflex, lookUpSkill } from '../../../artifacts/look-up.ts'
import { messageOf } from '../../../base/error-text.ts'
import { withIso } from '../../../base/time.ts'
import { evidence, find, list, start } from '../operations/learn-runs.ts'
import type { Candidate, StoredCandidate, StoredRun } from '../contract/runs.ts'
import { coversScope, type Principal } from '../../../contract/principal.ts'
import { findRun, listRuns } from '../store/learn-runs.ts'
import { storeOf } from '../../../store/store.ts'
import { decisionWords, rejectedWords } from '../contract/decision-words.ts'
import type { AuthEnv } from '../../../http/auth/middleware.ts'
import { resource, serve } from '../../../http/describe/operation.ts'
import { listed } from '../../../http/describe/paging.ts'
import { forbidden, notFound, unavailable } from '../../../http/problems/refusals.ts'
import { readableProgram } from '../../../reflexes/weights.ts'

export const learnRoutes = resource().openapiRoutes([
  serve(start, async ({ env, var: { principal } }, { body: request }) => {
    if (!coversScope(principal, request.scope)) throw forbidden(`The key ${principal.name} does not cover the scope ${request.scope}.`)
    try {
      return await env.LEARNER.getByName(request.scope).start({ ...request, started_by: 'request', by: principal.name })
    } catch (error) {
      throw unavailable(`The run could not be started: ${messageOf(error)}`)
    }
  }),
  serve(list, async (c, { query: { cursor: before, ...query } }) => {
    const found = await listRuns(storeOf(c.env), { ...query, patterns: c.var.principal.scopes, before })
    return listed(found, { present: presentListed, cursor: ({ started_at, run_id }) => ({ at: started_at, id: run_id }) })
  }),
  serve(evidence, async (c, { params: { id: run_id }, query: { candidate, part, limit, cursor } }) => {
    const { scope, candidates } = await covered(c, run_id)
    const found = candidates.find(({ id }) => id === candidate)
    if (!found) throw notFound(`The run ${run_id} has no candidate ${candidate}.`)
    const decision = found.kind === 'skill' ? found.id : found.decision
    const places = await c.env.LEARNER.getByName(scope).evidence({ run_id, decision, part })
    if (places === null) throw notFound(`The decisions behind ${candidate} are no longer kept: they are those of the last ten runs.`)
    const next = cursor + limit
    return { items: places.slice(cursor, next), next_cursor: next < places.length ? String(next) : null }
  }),
  serve(find, async (c, { params: { id } }) => {
    const run = await covered(c, id)
    const candidates = await Promise.all(run.candidates.map((one) => withVersion(storeOf(c.env), one, c.var.principal)))
    return { ...withIso(run, ['started_at', 'ended_at']), candidates, rejected: run.rejected.map(rejectedWords) }
  }),
])

async function covered({ env, var: { principal } }: Pick<Context<AuthEnv>, 'env' | 'var'>, id: string): Promise<StoredRun> {
  const run = await findRun(storeOf(env), id)
  if (!run || !coversScope(principal, run.scope)) throw notFound(`There is no run ${id} in the scopes of this key.`)
  return run
}

const presentListed = ({ candidates: _candidates, rejected: _rejected, reach: _reach, ...run }: StoredRun) =>
  withIso(run, ['started_at', 'ended_at'])

/** The registry has the content and the state of a version; `deleted` if the key sees none. */
async function withVersion(db: D1Database, stored: StoredCandidate, principal: Principal): Promise<Candidate> {
  const found = { ...stored, decision: decisionWords(stored.decision) }
  if (found.kind === 'reflex') {
    const seen = await lookUpReflex(db, { id: found.id, version: Number(found.version) }, { key: principal })
    return { ...found, state: seen?.version.state ?? 'deleted', ...(seen?.reads && { code: readableProgram(seen.version.code) }) }
  }
  const seen = await lookUpSkill(db, found, { key: principal })
  return { ...found, state: seen?.version.state ?? 'deleted', ...(seen?.reads && { manifest: seen.version.manifest }) }
}
