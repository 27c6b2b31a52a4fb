import { whyAnchored } from '../../tools/define-tool.ts'
import { type Json, type JsonFields, hashJson } from '../../base/json.ts'
import type { ControlPlaneVerdict } from '../../contract/policy.ts'
import type { GateDecision, GateRequest, Need } from '../gate/decision.ts'
import { decide } from '../gate/gate.ts'
import { maskOf, type SecretMask } from '../gate/mask.ts'
import { isRefused } from '../manifest/compat.ts'
import type { Manifest, FoundSkill } from '../manifest/manifest.ts'
import { anchorsOf, compilePlan, type Planned } from '../plan/compile.ts'
import { bindInputs } from '../plan/blackboard.ts'
import { fillSlots } from '../plan/slots.ts'
import type { Probes } from '../cel/expression.ts'
import type { SessionContext } from './context.ts'
import type { ApprovedRun, Parked, ParkedRun, PolicyMode, ProposalRequest, SkillUsage } from './ports.ts'

export type Case = {
  proposal_id: string
  skill: FoundSkill
  manifest_hash: string
  inputs: JsonFields
  why: string
  request: ProposalRequest
  /**
   * It was approved: a person confirmed that it is relevant, and it was when it was parked.
   * `asked`: the inputs that the question had, if the person changed them.
   */
  approval: { approval_id: string; recent_success: boolean; asked?: JsonFields } | null
}

/** `unparsed` says why a pinned parser gave no value. */
export type SessionDecision = {
  decision: GateDecision
  inputs: JsonFields
  enforced: boolean
  recent_success: boolean
  usage: SkillUsage
  unparsed: string[]
}

const OBSERVABLE = new Set<Need['need']>(['policy_field', 'role', 'residency', 'not_denied', 'promotion', 'approval'])

/** True if the decision is enforced, false if it is only observed. */
const isEnforced = ({ stage, needs }: GateDecision, mode: PolicyMode): boolean =>
  mode === 'enforce' || stage !== 'policy' || !needs.every(({ need }) => OBSERVABLE.has(need))

/** Asks the gate; if only parsable slots are missing, asks the parsers and then the gate again. */
export async function deliberate(context: SessionContext, proposed: Case): Promise<SessionDecision> {
  const first = await decideOnce(context, proposed)
  const { decision } = first
  if (proposed.request.dry_run || decision.verdict !== 'clarify' || decision.parsable.length === 0) return first
  const { manifest } = proposed.skill
  const { signal, text } = proposed.request
  const { ports, blackboard } = context
  const ask = (request: Parameters<typeof ports.ask>[0]) => ports.ask(request, signal)
  const filled = await fillSlots({ manifest, given: proposed.inputs, blackboard, text, ask })
  const head = { proposal_id: proposed.proposal_id, skill_id: manifest.id, version: manifest.version }
  context.log('skill-slots-parsed', { ...head, attempts: filled.attempts })
  const unparsed = filled.attempts.flatMap(({ slot, parser, detail }) =>
    detail === null ? [] : [`${slot} could not be read by ${parser}: ${detail}`],
  )
  return { ...(await decideOnce(context, { ...proposed, inputs: filled.inputs })), unparsed }
}

/** Asks the control plane only about what the gate would run, since that waits for the network. */
async function decideOnce(context: SessionContext, proposed: Case): Promise<SessionDecision> {
  const { clock } = context.ports
  const probes = probesFor(context, proposed.request)
  const begun = clock?.()
  let request = gateRequest(context, proposed)
  let decision = decide({ ...request, probes })
  const control_plane = await controlPlaneVerdict(context, request, decision)
  if (control_plane) {
    request = { ...gateRequest(context, proposed), control_plane }
    decision = decide({ ...request, probes })
  }
  const enforced = isEnforced(decision, context.settings.policy_mode ?? 'enforce')
  const duration_ms = clock && begun !== undefined ? clock() - begun : undefined
  logDecision(context, proposed, { request, decision, enforced, duration_ms })
  const { recent_success, last_run_at, running } = request
  return { decision, inputs: proposed.inputs, enforced, recent_success, usage: { last_run_at, running }, unparsed: [] }
}

/** A caller whose words may direct says where it goes. The words of others are a stranger's. */
function probesFor({ ports }: SessionContext, { from, proposer, roles }: ProposalRequest): Probes {
  const { probes } = ports
  const { origin } = probes
  if (from !== 'caller' || !Object.hasOwn(probes, 'origin') || !origin) return probes
  if (proposer && ports.directs?.(proposer.key_id, roles)) return { ...probes, origin: () => 'user' }
  return { ...probes, origin: (...args) => (origin(...args) === 'model' ? 'text:proposal' : origin(...args)) }
}

async function controlPlaneVerdict(
  { ports, settings }: SessionContext,
  { manifest: { id, version }, roles }: GateRequest,
  decision: GateDecision,
): Promise<ControlPlaneVerdict | null> {
  const runs =
    decision.verdict === 'allow' || decision.verdict === 'needs_approval' || !isEnforced(decision, settings.policy_mode ?? 'enforce')
  if (!ports.controlPlane || !runs) return null
  return ports.controlPlane({ skill_id: id, version, roles: [...roles] })
}

/** The anchors that a plan touches with these inputs, and its doubtful destinations. */
function touchedBy({ ports, settings, blackboard }: SessionContext, { skill: { manifest }, request }: Case, inputs: JsonFields) {
  const planned = { manifest, inputs, blackboard }
  return {
    anchored: anchorsOf(settings.anchors, planned),
    origins: request.from === 'caller' ? null : ports.origins?.(planned),
  }
}

/** Sentences on what an edit touches that the question did not: the approval is not for it. */
function unaskedBy(context: SessionContext, proposed: Case, { anchored, origins }: ReturnType<typeof touchedBy>): string[] {
  const { approval } = proposed
  if (!approval?.asked) return []
  const before = touchedBy(context, proposed, approval.asked)
  const anchors = anchored.filter((name) => !before.anchored.includes(name))
  const said = origins && origins.mode !== 'observe' ? origins.said.filter((one) => !before.origins?.said.includes(one)) : []
  return [...(anchors.length > 0 ? [whyAnchored(anchors)] : []), ...said]
}

function gateRequest(context: SessionContext, proposed: Case): GateRequest {
  const { ports, settings, blackboard } = context
  const { skill, inputs, request, approval } = proposed
  const { id } = skill.manifest
  const refused_here = isRefused(settings.refused_skills, skill.manifest)
  const tools = ports.tools()
  const touched = touchedBy(context, proposed, inputs)
  const { anchored, origins } = touched
  const unasked = unaskedBy(context, proposed, touched)
  return {
    manifest: skill.manifest,
    state: skill.state,
    compat: settings.place,
    inputs,
    inputs_from: request.from === 'caller' ? 'caller' : 'model',
    text: request.text,
    goal_labels: request.goal_labels ?? settings.goal_labels ?? [],
    entity_types: request.entity_types ?? settings.entity_types ?? [],
    blackboard,
    tools,
    absent_tools: absences(skill.manifest, tools, ports),
    recent_success: approval?.recent_success ?? ports.registry.recentSuccess().has(id),
    roles: request.roles,
    ...ports.registry.usage(id),
    approved: approval !== null,
    ...(skill.manifest.activation.cooldown_s > 0 &&
      isAnswered({ ports, blackboard }, { manifest: skill.manifest, inputs }) && { answered: true as const }),
    ...(request.named && { named: true }),
    ...(approval === null && !(ports.whyCounts?.() ?? request.text_is_why === true) && { why_counts: false as const }),
    ...(refused_here && { refused_here }),
    ...(anchored.length > 0 && { anchored }),
    ...(unasked.length > 0 && { unasked }),
    ...(origins && { origins }),
    ...(settings.tau === undefined ? {} : { default_tau_ratio: settings.tau }),
    now: ports.now(),
  }
}

/** A duplicate gets the outputs of the first run, in its cooldown, too. */
function isAnswered(
  { ports, blackboard }: Pick<SessionContext, 'ports' | 'blackboard'>,
  { manifest, inputs }: Pick<Planned, 'manifest' | 'inputs'>,
): boolean {
  if (!ports.registry.hasOutputs) return false
  const compiled = compilePlan(manifest, inputs, blackboard)
  const key = compiled.ok ? compiled.plan.idempotence_key : null
  return key !== null && ports.registry.hasOutputs(manifest.id, key)
}

function absences({ preconditions, plan }: Manifest, tools: readonly string[], ports: SessionContext['ports']): Record<string, string> {
  const there = new Set(tools)
  const named = new Set([...preconditions.tools_available, ...[...plan.steps, ...plan.compensation].map(({ tool }) => tool)])
  const said = Array.from(named, (tool) => [tool, there.has(tool) ? null : (ports.absence?.(tool) ?? null)] as const)
  return Object.fromEntries(said.flatMap(([tool, why]) => (why === null ? [] : [[tool, why]])))
}

/**
 * Logs the request and the decision. The manifest and blackboard are named by hash and revision.
 */
function logDecision(
  context: SessionContext,
  { proposal_id, manifest_hash, why, request: { from, dry_run }, approval }: Case,
  {
    request,
    decision,
    enforced,
    duration_ms,
  }: Pick<SessionDecision, 'decision' | 'enforced'> & { request: GateRequest; duration_ms: number | undefined },
): void {
  const { manifest, inputs, blackboard: _blackboard, ...rest } = request
  const mask = maskFor(manifest, inputs, context)
  const approval_id = approval?.approval_id ?? null
  const head = { proposal_id, skill_id: manifest.id, version: manifest.version, manifest_hash, from, why: mask.text(why), approval_id }
  const asked = mask.value({ ...rest, inputs } as unknown as Json)
  const decided = decision as unknown as Json
  const { revision } = context
  const time = duration_ms === undefined ? {} : { duration_ms }
  context.log('skill-decided', { ...head, ...time, dry_run: dry_run ?? false, enforced, revision, request: asked, decision: decided })
}

export const maskFor = (manifest: Manifest, inputs: JsonFields, { blackboard }: Pick<SessionContext, 'blackboard'>): SecretMask =>
  maskOf(manifest, bindInputs(manifest, inputs, blackboard).inputs)

/** Parks a run that needs approval, with all of its inputs except secret ones. */
export async function park(
  context: SessionContext,
  proposed: Case,
  { decision, inputs, recent_success }: SessionDecision,
): Promise<Parked> {
  const { skill, request, manifest_hash, proposal_id, why } = proposed
  const { id: skill_id, version } = skill.manifest
  const shown = shownInputs(skill.manifest, inputs, context)
  const parked_at = context.ports.now()
  const { self_approval, approval_within_s } = skill.manifest.policy
  const parked = {
    proposal_id,
    skill_id,
    version,
    manifest_hash,
    inputs: shown,
    inputs_hash: await hashJson(shown),
    why,
    reason: decision.reason,
    from: request.from,
    proposer: request.proposer ?? null,
    self_approval,
    roles: [...request.roles],
    text: request.text,
    goal_labels: [...(request.goal_labels ?? context.settings.goal_labels ?? [])],
    entity_types: [...(request.entity_types ?? context.settings.entity_types ?? [])],
    recent_success,
    trace_id: context.settings.trace_id,
    parked_at,
    expires_at: parked_at + approval_within_s * 1000,
  }
  return context.ports.approvals.park(parked, (approval_id) =>
    context.entry('approval-requested', { proposal_id, approval_id, skill_id, version, manifest_hash, reason: decision.reason }),
  )
}

/** Why the approved work differs from what would run now; null if it does not. */
export async function differenceFrom(
  approval: ApprovedRun,
  { skill, manifest_hash }: { skill: FoundSkill; manifest_hash: string },
  context: SessionContext,
): Promise<string | null> {
  const { skill_id, version, inputs, inputs_hash } = approval
  const name = `${skill_id}@${version}`
  if (skill.state !== 'active') return `${name} is ${skill.state} by now: propose another version`
  if (manifest_hash !== approval.manifest_hash) return `the manifest of ${name} is not the one that was approved`
  const bound = await hashJson(shownInputs(skill.manifest, inputs, context))
  if ((await hashJson(inputs)) !== inputs_hash || bound !== inputs_hash) return `the inputs of ${name} are not those that were approved`
  return null
}

/** The inputs that would be bound, without the secret ones. */
function shownInputs(manifest: Manifest, inputs: JsonFields, { blackboard }: SessionContext): JsonFields {
  const bound = bindInputs(manifest, inputs, blackboard).inputs
  const secret = new Set(manifest.signature.inputs.filter((input) => input.secret).map(({ name }) => name))
  return Object.fromEntries(Object.entries(bound).filter(([name]) => !secret.has(name)))
}

/** Limits the storage and the list of approvals: a model may propose repeatedly. */
const MOST_WAITING = 100

/** The answer for a run that waits already, or that finds no room; null if it may be parked. */
export function parkedBefore(waiting: readonly ApprovedRun[], run: ParkedRun, now: number): Parked | null {
  const earlier = waiting.find((other) => other.expires_at > now && isSameRun(other, run))
  if (earlier) return { ok: true, approval_id: earlier.approval_id, asked_before: true }
  if (waiting.length < MOST_WAITING) return null
  return { ok: false, detail: `${MOST_WAITING} runs wait for an approval already: decide on some of them first` }
}

const isSameRun = (one: ParkedRun, other: ParkedRun): boolean =>
  one.skill_id === other.skill_id &&
  one.manifest_hash === other.manifest_hash &&
  one.inputs_hash === other.inputs_hash &&
  one.proposer?.key_id === other.proposer?.key_id
