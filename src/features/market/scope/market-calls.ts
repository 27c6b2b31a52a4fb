import { hexHash } from '../../../base/hash.ts'
import type { Clean, SecretHider } from '../../../base/secrets.ts'
import { cleanEvent } from '../../../events/parse-event.ts'
import type { JsonFields } from '../../../base/json.ts'
import type { Via } from '../../../contract/log-entry.ts'
import type { MarketEvent, MarketView, Served, ServiceCall } from '../contract/view.ts'
import type { Accepted } from '../../../contract/scope-api.ts'
import type { Settings } from '../../../contract/settings/settings.ts'
import { newTraceId, randomHex, withDefaults, type Event } from '../../../core/event.ts'
import { isolateSandbox } from '../../../reflexes/isolate-sandbox.ts'
import { sampleWith, type ReflexContext } from '../../../reflexes/reflex-context.ts'
import { HIDDEN_ERROR, runReflex } from '../../../reflexes/run-reflex.ts'
import type { OperatorCalls } from '../../../engine/effects/operator-calls.ts'
import type { MayAct } from '../../../engine/reflexes/may-act.ts'
import type { OwnedReflexes, ReflexVersions } from '../../../engine/reflexes/versions.ts'
import { scopeHead } from '../../../engine/log/spans.ts'
import type { SkillCache } from '../../../engine/skills/skill-cache.ts'
import type { UnitOfWork } from '../../../kernel/unit.ts'
import type { MarketCopy } from './in-scope.ts'

type Pushed = {
  scope: string
  hider: SecretHider
  unit: UnitOfWork
  market: MarketCopy
  owned: Pick<OwnedReflexes, 'remove'>
  settings: () => Settings
  loop: { accept: (events: readonly Clean<Event>[], via: Via) => Accepted }
  now: () => number
}

/** Copies the view, then accepts the events, if the scope takes part in the market. */
export function marketChanged(parts: Pushed, view: MarketView, events: readonly MarketEvent[]): { accepted: boolean } {
  const { scope, hider, unit, market, owned, settings, loop, now } = parts
  unit((unit) => {
    if (market.replace(unit, view)) for (const id of market.sold_reflexes) owned.remove(id)
  })
  if (!settings().market || events.length === 0) return { accepted: true }
  const known = events.map((event) => ({ ...event, id: eventId(event.id) }))
  const accepted = loop.accept(
    known.map((event) => cleanEvent(withDefaults(event, { now: now(), source: 'ledger', scope }) as Event, hider)),
    'ledger',
  )
  return { accepted: accepted.ok }
}

/** An id of the Ledger may be longer than one of an event. */
const eventId = (id: string): string => `ledger:${id.length <= 120 ? id : hexHash(id)}`

type Serving = {
  scope: string
  unit: UnitOfWork
  operator_calls: OperatorCalls
  programs: ReflexVersions
  market: MarketCopy
  agent: () => { name: string }
  skills: { readonly agentRoles: string[] }
  skill_cache: Pick<SkillCache, 'catchUp' | 'find' | 'goodsOf'>
  may_act: Pick<MayAct, 'expired'>
  now: () => number
}

/**
 * Serves a call under a contract: a skill runs here as if its own agent had asked, gated as always;
 * a reflex of the chain answers with the action that it would take, which is not carried out.
 */
export async function serve(parts: Serving, call: ServiceCall): Promise<string> {
  const kind = call.service.slice(0, call.service.indexOf(':'))
  const id = call.service.slice(call.service.indexOf(':') + 1)
  const trace_id = call.trace?.trace_id ?? newTraceId()
  const of = { id, trace_id }
  return JSON.stringify(kind === 'skill' ? await serveSkill(parts, call, of) : serveReflex(parts, call, of))
}

type Of = { id: string; trace_id: string }

/** A repeated call gets the run that it had. */
async function serveSkill(
  { operator_calls, skills, skill_cache, scope }: Serving,
  call: ServiceCall,
  { id, trace_id }: Of,
): Promise<Served> {
  const { contract_id, invocation_id, caller, input, trace } = call
  await skill_cache.catchUp({ at_once: true })
  const manifest = (await skill_cache.find(id))?.manifest
  if (!manifest) return { ok: false, detail: `scope ${scope} has no skill ${id}`, trace_id }
  if (skill_cache.goodsOf(manifest).licences) return notOwn(`skill ${id}`, scope, trace_id)
  // This version: a licensed one may become the newest meanwhile.
  const proposal = { skill_id: `${id}@${manifest.version}`, inputs: input as JsonFields, why: `contract ${contract_id} with ${caller}` }
  const by = { name: caller, key_id: `contract:${contract_id}`, from: 'caller' as const, roles: skills.agentRoles }
  const result = await operator_calls.propose(proposal, {
    ...by,
    dry_run: false,
    // The caller pays when this call ends: a later run would be unpaid.
    waits: false,
    named: true,
    call_id: `invocation:${invocation_id}`,
    ...(trace && { trace }),
  })
  if (result.status === 'ok') return { ok: true, output: result.outputs, trace_id }
  return { ok: false, detail: `skill ${id} ended as ${result.status}: ${result.reason ?? 'no reason'}`, trace_id }
}

/** A licence is for the actions of its own scope: others buy their own. */
const notOwn = (what: string, scope: string, trace_id: string): Served => ({
  ok: false,
  detail: `${what} is not of scope ${scope}, which may not sell its answers`,
  trace_id,
})

function serveReflex(parts: Serving, call: ServiceCall, { id, trace_id }: Of): Served {
  const { programs, may_act, scope, unit, market, agent, now } = parts
  const link = programs.links.find(({ reference }) => reference.id === id)
  const acting = link?.acting
  if (!acting) return { ok: false, detail: `no version of reflex ${id} acts in scope ${scope}`, trace_id }
  if (acting.licences || !programs.covers(acting)) return notOwn(`reflex ${id}`, scope, trace_id)
  const unproven = may_act.expired(acting, now())
  const version = unproven === null ? acting : link.earlier
  if (!version) return { ok: false, detail: `reflex ${id} does not act in scope ${scope}: ${unproven}`, trace_id }
  const { caller, input, invocation_id, trace } = call
  unit((unit) =>
    unit.log({ ...scopeHead(trace ?? { trace_id, parent_id: null }), kind: 'call-received', call: 'reflex', name: id, by: caller }),
  )
  const at = new Date(now()).toISOString()
  const fields = {
    ...input,
    type: 'invocation',
    id: `service:${randomHex(8)}`,
    scope,
    source: 'ledger',
    timestamp: at,
    caller,
    artifact: id,
  }
  const context: ReflexContext = { ...sampleWith(fields), agent_id: agent().name, balance: market.view.account.balance, scratch: {} }
  const { action, reason, error } = runReflex(isolateSandbox(), { hash: version.hash, code: version.code }, context)
  // The caller may not read the code, which the error would quote.
  if (error !== null) return { ok: false, detail: `reflex ${id} failed: ${HIDDEN_ERROR}`, trace_id }
  return { ok: true, output: { action, reason, invocation_id }, trace_id }
}
