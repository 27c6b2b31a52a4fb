import { registerSkill, setSkillState } from '../../../artifacts/kinds.ts'
import type { LearnedSkill, SkillAdoption, SkillGrounds } from '../contract/learner-api.ts'
import { agreementOfTools } from '../../../contract/agreement.ts'
import { agentOwner } from '../../../contract/reflex.ts'
import { hashManifest, type Manifest } from '../../../skills/manifest/manifest.ts'
import { agentRoles } from '../../../skills/session/context.ts'
import { saveSkillCases, saveSkillTest } from '../../../store/artifacts/skill-tests.ts'
import { storeOf } from '../../../store/store.ts'
import { factsOf } from '../../../tools/tool-facts.ts'
import type { Activation, ParkedRuns } from '../../approvals/scope/approvals.ts'
import type { Skilled } from '../../../engine/skills/wiring.ts'

type SkillAdoptionParts = Pick<Skilled, 'scope' | 'env' | 'agent' | 'toolbox' | 'settings' | 'now'> & {
  parked_runs: Pick<ParkedRuns, 'askActivation'>
}

/** Allowed tools only: no skill is compiled from the others. */
export async function skillGrounds({ toolbox, settings }: Pick<SkillAdoptionParts, 'toolbox' | 'settings'>): Promise<SkillGrounds> {
  await toolbox.ready()
  const allowed = Object.entries(toolbox.all).filter(([name]) => toolbox.forPlan(name).ok)
  const { mode, min_support, min_agreement } = settings().learning
  return { tools: [...factsOf(Object.fromEntries(allowed))], roles: agentRoles(settings()), mode, min_support, min_agreement }
}

/**
 * Registers what was mined from the scope's decisions as its agent's own, as a candidate, with its
 * cases and its report. By `learning.mode` it then acts, or a person is asked. Each step changes
 * nothing when it is repeated.
 */
export async function adoptSkill(parts: SkillAdoptionParts, learned: LearnedSkill): Promise<SkillAdoption> {
  const { run_id, cases, report } = learned
  const manifest = learned.manifest as Manifest
  const { env, scope, agent, now } = parts
  const hash = await hashManifest(manifest)
  if (!report.passed || report.hash !== hash) return { ok: false, reason: 'untested', detail: `${manifest.id} has not passed its tests` }
  const lacking = await lacks(parts, manifest)
  if (lacking !== null) return { ok: false, reason: 'lacks', detail: lacking }
  const db = storeOf(env)
  const owner = agentOwner(scope)
  const provenance = { by: agent().name, scope, run: run_id }
  const registered = await registerSkill(db, { manifest, hash, owner, owner_id: owner, scopes: [scope], provenance, now: now() })
  if (!registered.ok) return registered
  const { id, version } = registered.version
  await saveSkillCases(db, id, cases)
  await saveSkillTest(db, report, { by: 'learner', now: now() })
  if (registered.version.state === 'candidate') await activate(parts, { id, version, hash }, learned)
  return { ok: true, id, version }
}

/**
 * `auto` activates a skill that is proven on later turns and makes no final call. Until then it
 * stays a candidate. With a final call, and with `propose`, a person decides.
 */
async function activate(
  { env, scope, settings, toolbox, parked_runs, now }: SkillAdoptionParts,
  skill: Activation,
  learned: LearnedSkill,
): Promise<void> {
  const { mode, min_agreement } = settings().learning
  if (mode !== 'auto' && mode !== 'propose') return
  const facts = factsOf(toolbox.all)
  const isFinal = (tool: string): boolean => facts.get(tool)?.repeatable !== true && facts.get(tool)?.inverse == null
  const tools = (learned.manifest as Manifest).plan.steps.map(({ tool }) => tool)
  const final = new Set(tools.filter(isFinal))
  if (mode === 'propose' || final.size > 0)
    return parked_runs.askActivation(skill, { run_id: learned.run_id, why: why(learned, [...final]) })
  const { proof } = learned.mined
  if (!proof || proof.low < agreementOfTools(min_agreement, tools)) return
  const proven = `${proof.agreed} of ${proof.turns} later turns made the same calls`
  const reason = `its tests passed, ${proven}, and each of its calls can be undone or repeated (in scope ${scope})`
  await setSkillState(storeOf(env), { ...skill, from: 'candidate', state: 'active', reason, now: now() })
}

/** The evidence that a person decides on. */
function why({ manifest, mined: { turns, support, success, delta_cost, tests, proof } }: LearnedSkill, final: readonly string[]): string {
  const share = (of: number): string => `${Math.round(of * 100)} %`
  const sequence = (manifest as Manifest).plan.steps.map(({ tool }) => tool).join(' → ')
  return [
    `${turns} turns did ${sequence}: ${share(support)} of those that ended well. ${share(success)} of its occurrences ended well.`,
    `It passed ${tests.unit.passed} of ${tests.unit.n} cases and ${tests.fuzz.passed} of ${tests.fuzz.n} mutations.`,
    ...(proof ? [`Of ${proof.turns} later turns with its tools ${proof.agreed} made the same calls.`] : []),
    `Against these turns, the cost changes by ${share(delta_cost)}.`,
    ...(final.length > 0 ? [`Neither undone nor repeated can be: ${final.join(', ')}.`] : []),
  ].join(' ')
}

/** A learned skill never does what its agent cannot do, not even to undo a step. */
async function lacks({ toolbox }: SkillAdoptionParts, { plan }: Manifest): Promise<string | null> {
  await toolbox.ready()
  for (const { tool } of [...plan.steps, ...plan.compensation]) {
    const found = toolbox.forPlan(tool)
    if (!found.ok) return found.detail
  }
  return null
}
