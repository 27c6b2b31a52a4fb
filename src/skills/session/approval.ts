import { bindInputs } from '../plan/inputs.ts'
import { hashJson, type JsonFields } from '../../base/json.ts'
import type { Manifest } from '../manifest/manifest.ts'
import type { SessionContext } from './context.ts'
import type { Case, SessionDecision } from './decide.ts'
import type { ApprovedRun, FoundSkill, Parked, ParkedRun } from './ports.ts'

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
