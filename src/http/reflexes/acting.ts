import { z } from '@hono/zod-openapi'
import { setReflexState } from '../../artifacts/kinds.ts'
import { reflexVersionsFor } from '../../artifacts/look-up.ts'
import { notifyScopes } from '../../artifacts/notify.ts'
import { revokeLicences } from '../../artifacts/revoke.ts'
import { messageOf } from '../../base/error-text.ts'
import { coversScope, type Principal } from '../../contract/principal.ts'
import { reflexId, reflexState, type ReflexState } from '../../contract/reflex.ts'
import { actsOf } from '../../reflexes/promotion.ts'
import type { Env } from '../../env.ts'
import { scopeName } from '../../core/event.ts'
import { scopesUsing } from '../../store/artifacts/feed.ts'
import { storeOf } from '../../store/store.ts'
import { demandControl } from '../artifacts/owner-access.ts'
import { reflexAt } from '../artifacts/path.ts'
import { demandProof } from '../artifacts/proof.ts'
import { guard, json, jsonRequest, problems, resource, routes } from '../describe/describe.ts'
import { paged, pageLimit } from '../../contract/paging.ts'
import { conflict } from '../problems/refusals.ts'

const route = routes('Reflexes')
const version = z.int()
const byId = z.object({ id: reflexId })
const reason = z.string().min(1).max(1000).optional()
const operators = guard({ roles: ['operator'], body: 'optional' })

const changes = z.object({
  id: z.string(),
  changed: z.array(z.object({ version, from: reflexState, to: reflexState })).describe('Empty if nothing had to change.'),
  acts: version.nullable().describe('The version that acts where a chain follows the reflex; null: none does.'),
})
type Changes = z.infer<typeof changes>

const off = route('post /v1/reflexes/{id}/off', 'switchReflexOff', 'Switch a reflex off', {
  description:
    'Every version that acts or runs in shadow mode becomes a draft, so that none acts in any scope, and none is promoted by proof. ' +
    'To switch it on again, activate a version. The body is optional.',
  ...operators,
  request: { params: byId, body: jsonRequest(z.strictObject({ reason }), { reason: 'it greets twice' }) },
  responses: { 200: json(changes, 'What changed, and that none acts.'), ...problems(400, 404, 409, 413, 415) },
})

const rollback = route('post /v1/reflexes/{id}/rollback', 'rollBackReflex', 'Roll a reflex back to its earlier version', {
  description:
    'The version that acts becomes a draft, and so does any later one in shadow mode; the newest earlier one that is not retired acts. ' +
    '`from` names the version that is to stop: if another one acts, nothing changes, so that a repeated request rolls back once. ' +
    'An earlier version that an agent wrote must be proven, unless the request carries `"force": true`. The body is optional.',
  ...operators,
  request: {
    params: byId,
    body: jsonRequest(z.strictObject({ from: version.min(1).optional(), reason, force: z.boolean().default(false) }), {
      from: 2,
      reason: 'it greets twice',
    }),
  },
  responses: { 200: json(changes, 'What changed, and which version acts.'), ...problems(400, 404, 409, 413, 415) },
})

const where = z.object({
  scope: z.string(),
  acts: version.nullable().describe('The version that acts there; null if none does.'),
  watches: version.nullable().describe('The version that runs in shadow mode.'),
  reason: z.string().nullable().describe('Why none acts, or why an earlier one does.'),
})

const scopes = route('get /v1/reflexes/{id}/scopes', 'listReflexScopes', 'List where a reflex acts', {
  description:
    'The scopes that have the reflex in their chain and that the key covers, by name, each with the version that acts there now. ' +
    'Each scope is asked, so a page has at most 50.',
  ...guard({ roles: ['viewer'] }),
  request: { params: byId, query: z.object({ limit: pageLimit(50), cursor: scopeName.optional() }) },
  responses: { 200: json(paged(where), 'A page.'), ...problems(400, 404) },
})

export const reflexActingRoutes = resource()
  .openapi(off, async (c) => {
    const versions = await ownVersions(c.env, c.var.principal, c.req.valid('param').id)
    const { reason: why } = c.req.valid('json')
    const said = `${c.var.principal.name} switched it off${why === undefined ? '' : `: ${why}`}`
    return c.json(
      await changed(
        c.env,
        versions,
        versions.filter(isOn).map((one) => ({ one, to: 'draft', reason: said })),
      ),
      200,
    )
  })
  .openapi(rollback, async (c) => {
    const { principal } = c.var
    const versions = await ownVersions(c.env, principal, c.req.valid('param').id)
    const { from, reason: why, force } = c.req.valid('json')
    const acts = actsOf(versions)
    if (acts === null || (from !== undefined && acts !== from)) return c.json(await changed(c.env, versions, []), 200)
    const earlier = versions.find((one) => one.version < acts && one.state !== 'retired')
    const { id } = versions[0] as Own
    if (!earlier)
      throw conflict('no-earlier-version', `${id}@${acts} has no earlier version that is not retired: switch the reflex off instead.`)
    const said = `${principal.name} rolled it back to ${earlier.version}${why === undefined ? '' : `: ${why}`}`
    if (!force)
      await demandProof(storeOf(c.env), (await reflexAt(storeOf(c.env), earlier, principal)).version, { wanted: 'active', now: Date.now() })
    // First the earlier one: if the process dies in between, the later one still acts.
    const steps: StateStep[] = earlier.state === 'active' ? [] : [{ one: earlier, to: 'active', reason: said }]
    for (const one of versions) if (isOn(one) && one.version > earlier.version) steps.push({ one, to: 'draft', reason: said })
    return c.json(await changed(c.env, versions, steps), 200)
  })
  .openapi(scopes, async (c) => {
    const { id } = c.req.valid('param')
    await reflexAt(storeOf(c.env), { id }, c.var.principal)
    const { limit, cursor } = c.req.valid('query')
    const all = (await scopesUsing(storeOf(c.env), id, MOST_SCOPES, cursor)).filter((scope) => coversScope(c.var.principal, scope))
    const page = all.slice(0, limit)
    const items = await Promise.all(page.map((scope) => actsIn(c.env, scope, id)))
    return c.json({ items, next_cursor: all.length > limit ? (page.at(-1) ?? null) : null }, 200)
  })

/** Scopes of which a page keeps those that the key covers. */
const MOST_SCOPES = 1000

type Own = { id: string; version: number; hash: string; state: ReflexState; sealed: boolean }
type StateStep = { one: Own; to: ReflexState; reason: string }

const isOn = ({ state }: Pick<Own, 'state'>): boolean => state === 'active' || state === 'shadow'

/** The versions of a reflex that the key may switch, newest first. */
async function ownVersions(env: Env, principal: Principal, id: string): Promise<Own[]> {
  const { version: found } = await reflexAt(storeOf(env), { id }, principal)
  demandControl(principal, { kind: 'reflex', ...found })
  const versions = await reflexVersionsFor(storeOf(env), id, { key: principal })
  const { sealed } = found
  return versions.map(({ version: number, hash, state }) => ({ id, version: number, hash, state, sealed }))
}

/** Takes the steps in order, each from the state that was read: another change wins. */
async function changed(env: Env, versions: readonly Own[], steps: readonly StateStep[]): Promise<Changes> {
  const after = new Map(versions.map((one) => [one.version, one.state]))
  const done: Changes['changed'] = []
  for (const { one, to, reason: why } of steps) {
    const { id, version: number, state: from, hash } = one
    const answer = await setReflexState(storeOf(env), { id, version: number, from, state: to, reason: why, now: Date.now() })
    if (!answer.ok) throw conflict('state-not-allowed', answer.detail)
    after.set(number, answer.version.state)
    if (answer.version.state !== to) continue
    done.push({ version: number, from, to })
    if (answer.version.sealed && to !== 'active')
      await revokeLicences(env, { artifact: `reflex:${id}@${number}`, hash, reason: `${id}@${number} is ${to}` })
  }
  const { id = '' } = versions[0] ?? {}
  if (done.length > 0) await notifyScopes(env, id)
  return { id, changed: done, acts: actsOf(Array.from(after, ([number, state]) => ({ version: number, state }))) }
}

async function actsIn(env: Env, scope: string, id: string): Promise<z.infer<typeof where>> {
  try {
    const { reflexes: chain } = await env.SCOPE.getByName(scope).chain()
    const link = chain.find((one) => one.id === id)
    if (!link) return { scope, acts: null, watches: null, reason: 'it is no longer in the chain of this scope' }
    return { scope, acts: link.version, watches: link.watching, reason: link.absent }
  } catch (error) {
    return { scope, acts: null, watches: null, reason: `the scope did not answer: ${messageOf(error)}` }
  }
}
