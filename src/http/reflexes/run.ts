import { evaluate, run, off, rollBack, scopes } from '../../contract/operations/reflexes.ts'
import { evaluateRecordings } from '../../reflexes/evaluation.ts'
import { isolateSandbox } from '../../reflexes/isolate-sandbox.ts'
import { sampleContext } from '../../reflexes/reflex-context.ts'
import { runReflex } from '../../reflexes/run-reflex.ts'
import { withComputing } from '../auth/computing.ts'
import { resource, serve } from '../describe/operation.ts'
import { demandCoverage, type AuthEnv } from '../auth/middleware.ts'
import { reflexAt } from '../artifacts/path.ts'
import { readable } from '../artifacts/sealed.ts'
import { storeOf } from '../../store/store.ts'
import { setReflexState } from '../../artifacts/kinds.ts'
import { reflexVersionsFor } from '../../artifacts/look-up.ts'
import { notifyScopes } from '../../artifacts/notify.ts'
import type { Context } from 'hono'
import { messageOf } from '../../base/error-text.ts'
import { coversScope, type Principal } from '../../contract/principal.ts'
import type { AnswerOf } from '../../contract/operation.ts'
import type { ReflexState } from '../../contract/reflex.ts'
import { actsOf } from '../../reflexes/promotion.ts'
import type { Env } from '../../env.ts'
import { scopesUsing } from '../../store/artifacts/feed.ts'
import { demandControl } from '../artifacts/owner-access.ts'
import { demandProof } from '../artifacts/proof.ts'
import { versionEnded } from '../artifacts/version-ended.ts'
import { conflict } from '../problems/refusals.ts'

/** Recordings per page. The scope limits a page by its bytes, too. */
const PAGE = 100
const runRoutes = resource().openapiRoutes([
  serve(run, async (c, { params: { ref }, body: { context } }) => {
    const program = readable(await reflexAt(storeOf(c.env), ref, c.var.principal))
    return withComputing(c.var.principal, (computing) => {
      const ran = runReflex(isolateSandbox(), program, { ...sampleContext, ...context })
      computing.spend(ran.fuel)
      return ran
    })
  }),
  serve(evaluate, async (c, { params: { ref }, body: { scope, window } }) => {
    demandCoverage(c.var.principal, [{ scope }])
    const program = readable(await reflexAt(storeOf(c.env), ref, c.var.principal))
    const recorded = c.env.SCOPE.getByName(scope)
    const since = Date.now() - window
    return withComputing(c.var.principal, (computing) =>
      evaluateRecordings({
        sandbox: isolateSandbox(),
        program,
        identify: (calls) => recorded.identify(calls),
        read: (after) => recorded.recordings({ since, after, limit: PAGE }),
        computing,
      }),
    )
  }),
])

const reflexActingRoutes = resource().openapiRoutes([
  serve(off, async (c, { params: { id }, body: { reason: why } }) => {
    const versions = await ownVersions(c.env, c.var.principal, id)
    const said = `${c.var.principal.name} switched it off${why === undefined ? '' : `: ${why}`}`
    return changed(
      c,
      versions,
      versions.filter(isOn).map((one) => ({ one, to: 'draft', reason: said })),
    )
  }),
  serve(rollBack, async (c, { params: { id }, body: { from, reason: why, force } }) => {
    const { principal } = c.var
    const versions = await ownVersions(c.env, principal, id)
    const acts = actsOf(versions)
    if (acts === null || (from !== undefined && acts !== from)) return changed(c, versions, [])
    const earlier = versions.find((one) => one.version < acts && one.state !== 'retired')
    if (!earlier)
      throw conflict('no-earlier-version', `${id}@${acts} has no earlier version that is not retired: switch the reflex off instead.`)
    const said = `${principal.name} rolled it back to ${earlier.version}${why === undefined ? '' : `: ${why}`}`
    if (!force)
      await demandProof(storeOf(c.env), (await reflexAt(storeOf(c.env), earlier, principal)).version, { wanted: 'active', now: Date.now() })
    // First the earlier one: if the process dies in between, the later one still acts.
    const steps: StateStep[] = earlier.state === 'active' ? [] : [{ one: earlier, to: 'active', reason: said }]
    for (const one of versions) if (isOn(one) && one.version > earlier.version) steps.push({ one, to: 'draft', reason: said })
    return changed(c, versions, steps)
  }),
  serve(scopes, async (c, { params: { id }, query: { limit, cursor } }) => {
    await reflexAt(storeOf(c.env), { id }, c.var.principal)
    const all = (await scopesUsing(storeOf(c.env), id, MOST_SCOPES, cursor)).filter((scope) => coversScope(c.var.principal, scope))
    const page = all.slice(0, limit)
    const items = await Promise.all(page.map((scope) => actsIn(c.env, scope, id)))
    return { items, next_cursor: all.length > limit ? (page.at(-1) ?? null) : null }
  }),
])

export const reflexRoutes = resource().route('/', runRoutes).route('/', reflexActingRoutes)

/** Scopes of which a page keeps those that the key covers. */
const MOST_SCOPES = 1000

type Changes = AnswerOf<typeof off.answers>
type ActingPlace = AnswerOf<typeof scopes.answers>['items'][number]
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
async function changed(c: Context<AuthEnv>, versions: readonly Own[], steps: readonly StateStep[]): Promise<Changes> {
  const after = new Map(versions.map((one) => [one.version, one.state]))
  const done: Changes['changed'] = []
  for (const { one, to, reason: why } of steps) {
    const { id, version: number, state: from, hash } = one
    const answer = await setReflexState(storeOf(c.env), { id, version: number, from, state: to, reason: why, now: Date.now() })
    if (!answer.ok) throw conflict('state-not-allowed', answer.detail)
    after.set(number, answer.version.state)
    if (answer.version.state !== to) continue
    done.push({ version: number, from, to })
    if (answer.version.sealed && to !== 'active')
      await versionEnded(c, { artifact: `reflex:${id}@${number}`, hash, reason: `${id}@${number} is ${to}` })
  }
  const { id = '' } = versions[0] ?? {}
  if (done.length > 0) await notifyScopes(c.env, id)
  return { id, changed: done, acts: actsOf(Array.from(after, ([number, state]) => ({ version: number, state }))) }
}

async function actsIn(env: Env, scope: string, id: string): Promise<ActingPlace> {
  try {
    const { reflexes: chain } = await env.SCOPE.getByName(scope).chain()
    const link = chain.find((one) => one.id === id)
    if (!link) return { scope, acts: null, watches: null, reason: 'it is no longer in the chain of this scope' }
    return { scope, acts: link.version, watches: link.watching, reason: link.absent }
  } catch (error) {
    return { scope, acts: null, watches: null, reason: `the scope did not answer: ${messageOf(error)}` }
  }
}
