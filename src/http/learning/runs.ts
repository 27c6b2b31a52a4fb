import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { lookUpReflex, lookUpSkill } from '../../artifacts/look-up.ts'
import { messageOf } from '../../base/error-text.ts'
import { withIso } from '../../base/time.ts'
import {
  evidenceParts,
  evidencePlace,
  learnRequest,
  learnRun,
  listedRun,
  runStatus,
  startedRun,
  type Candidate,
  type StoredCandidate,
  type StoredRun,
} from '../../contract/reports/learning/runs.ts'
import { coversScope, type Principal } from '../../contract/principal.ts'
import { scopeName } from '../../core/event.ts'
import { findRun, listRuns } from '../../store/learning/learn-runs.ts'
import { storeOf } from '../../store/store.ts'
import type { AuthEnv } from '../auth/middleware.ts'
import { guard, idPath, json, jsonRequest, problems, resource, routes } from '../describe/describe.ts'
import { byAge, paged, pageLimit } from '../../contract/paging.ts'
import { listed } from '../describe/paging.ts'
import { forbidden, notFound, unavailable } from '../problems/refusals.ts'

const route = routes('Learning')

const start = route('post /v1/learn', 'startLearning', 'Learn from the decisions of a scope', {
  description:
    'Starts a run, which reads what turns and people have decided since the last run, and writes reflexes and skills that decide the same. A reflex is registered in shadow mode; it acts ' +
    'once later decisions have proven it, as the setting `learning.mode` allows. A skill that passes its tests is registered as a candidate, which a person activates. A scope learns once at a time: a further request answers with the run that has begun. ' +
    'Reading and learning happen beside the scope and do not delay its events.',
  ...guard({ roles: ['operator'], body: 'json' }),
  request: { body: jsonRequest(learnRequest, { scope: 'ssh/web-1', window: 10_000 }) },
  responses: { 202: json(startedRun, 'The run.'), ...problems(400, 413, 415, 503) },
})

const list = route('get /v1/learn/runs', 'listLearnRuns', 'List runs of learning, newest first', {
  description: 'The runs of the scopes that the key covers, without what they found.',
  ...guard({ roles: ['viewer'] }),
  request: { query: byAge({ scope: scopeName.optional(), status: runStatus.optional() }) },
  responses: { 200: json(paged(listedRun), 'A page.'), ...problems(400) },
})

const find = route('get /v1/learn/runs/{id}', 'getLearnRun', 'Get a run of learning', {
  description:
    'Its progress; what it found, with the evidence for it and the traces of examples; and what it rejected, with the reasons. While it runs, the progress is up to 2 s old.',
  ...guard({ roles: ['viewer'] }),
  request: { params: idPath },
  responses: { 200: json(learnRun, 'The run.'), ...problems(400, 404) },
})

const show = route('get /v1/learn/runs/{id}/evidence', 'getLearnEvidence', 'Get the decisions behind a number', {
  description:
    'The decisions that a candidate was learned from (`train`), and the newer ones that what was learned from the older ones would have decided: `agreed` and `differed`. A skill has the turns that contain its sequence, as `train`. ' +
    'Kept for the last ten runs of a scope.',
  ...guard({ roles: ['viewer'] }),
  request: {
    params: idPath,
    query: z.object({
      candidate: z.string().min(1).max(200).describe('Its id.'),
      part: z.enum(evidenceParts).default('train').describe('`held_out.covered` is the sum of `agreed` and `differed`.'),
      limit: pageLimit(1000),
      cursor: z.coerce.number<string>().int().min(0).default(0),
    }),
  },
  responses: { 200: json(paged(evidencePlace), 'A page, oldest first.'), ...problems(400, 404) },
})

export const learnRoutes = resource()
  .openapi(start, async (c) => {
    const { principal } = c.var
    const request = c.req.valid('json')
    if (!coversScope(principal, request.scope)) throw forbidden(`The key ${principal.name} does not cover the scope ${request.scope}.`)
    try {
      return c.json(await c.env.LEARNER.getByName(request.scope).start({ ...request, started_by: 'request', by: principal.name }), 202)
    } catch (error) {
      throw unavailable(`The run could not be started: ${messageOf(error)}`)
    }
  })
  .openapi(list, async (c) => {
    const { cursor: before, ...query } = c.req.valid('query')
    const found = await listRuns(storeOf(c.env), { ...query, patterns: c.var.principal.scopes, before })
    return c.json(listed(found, { present: presentListed, cursor: ({ started_at, run_id }) => ({ at: started_at, id: run_id }) }), 200)
  })
  .openapi(show, async (c) => {
    const { id: run_id } = c.req.valid('param')
    const { candidate, part, limit, cursor } = c.req.valid('query')
    const { scope, candidates } = await covered(c, run_id)
    const found = candidates.find(({ id }) => id === candidate)
    if (!found) throw notFound(`The run ${run_id} has no candidate ${candidate}.`)
    const places = await c.env.LEARNER.getByName(scope).evidence({
      run_id,
      decision: found.kind === 'skill' ? found.id : found.decision,
      part,
    })
    if (places === null) throw notFound(`The decisions behind ${candidate} are no longer kept: they are those of the last ten runs.`)
    const next = cursor + limit
    return c.json({ items: places.slice(cursor, next), next_cursor: next < places.length ? String(next) : null }, 200)
  })
  .openapi(find, async (c) => {
    const run = await covered(c, c.req.valid('param').id)
    const candidates = await Promise.all(run.candidates.map((one) => withVersion(storeOf(c.env), one, c.var.principal)))
    return c.json({ ...withIso(run, ['started_at', 'ended_at']), candidates }, 200)
  })

async function covered({ env, var: { principal } }: Pick<Context<AuthEnv>, 'env' | 'var'>, id: string): Promise<StoredRun> {
  const run = await findRun(storeOf(env), id)
  if (!run || !coversScope(principal, run.scope)) throw notFound(`There is no run ${id} in the scopes of this key.`)
  return run
}

const presentListed = ({ candidates: _candidates, rejected: _rejected, ...run }: StoredRun) => withIso(run, ['started_at', 'ended_at'])

/** The registry has the content and the state of a version; `deleted` if the key sees none. */
async function withVersion(db: D1Database, found: StoredCandidate, principal: Principal): Promise<Candidate> {
  if (found.kind === 'reflex') {
    const seen = await lookUpReflex(db, { id: found.id, version: Number(found.version) }, { key: principal })
    return { ...found, state: seen?.version.state ?? 'deleted', ...(seen?.reads && { code: seen.version.code }) }
  }
  const seen = await lookUpSkill(db, found, { key: principal })
  return { ...found, state: seen?.version.state ?? 'deleted', ...(seen?.reads && { manifest: seen.version.manifest }) }
}
