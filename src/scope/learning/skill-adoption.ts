import { registerSkill, skills } from '../../artifacts/kinds.ts'
import type { LearnedSkill, SkillAdoption, SkillGrounds } from '../../contract/reports/learning/learner-api.ts'
import { agentOwner } from '../../contract/reflex.ts'
import { hashManifest, type Manifest } from '../../skills/manifest/manifest.ts'
import { agentRoles } from '../../skills/session/owner.ts'
import { saveSkillCases, saveSkillTest } from '../../store/artifacts/skill-tests.ts'
import { storeOf } from '../../store/store.ts'
import { factsOf } from '../../tools/tool-facts.ts'
import type { Lanes } from '../effects/wiring.ts'

type Parts = Pick<Lanes, 'scope' | 'env' | 'agent' | 'toolbox' | 'settings' | 'now'>

/** Allowed tools only: no skill is compiled from the others. */
export async function skillGrounds({ toolbox, settings }: Parts): Promise<SkillGrounds> {
  await toolbox.ready()
  const allowed = Object.entries(toolbox.all).filter(([name]) => toolbox.forPlan(name).ok)
  return { tools: [...factsOf(Object.fromEntries(allowed))], roles: agentRoles(settings()), min_support: settings().learning.min_support }
}

/**
 * Registers what was mined from the scope's decisions as its agent's own, as a candidate, with its
 * cases and its report. Each step changes nothing when it is repeated.
 */
export async function adoptSkill(parts: Parts, { run_id, manifest, cases, report }: LearnedSkill): Promise<SkillAdoption> {
  const { env, scope, agent, now } = parts
  const hash = await hashManifest(manifest as Manifest)
  if (!report.passed || report.hash !== hash) return { ok: false, reason: 'untested', detail: `${manifest.id} has not passed its tests` }
  const lacking = await lacks(parts, manifest as Manifest)
  if (lacking !== null) return { ok: false, reason: 'lacks', detail: lacking }
  const [db, owner] = [storeOf(env), agentOwner(scope)]
  const provenance = { by: agent().name, scope, run: run_id }
  const registered = await registerSkill(db, { manifest, hash, owner, owner_id: owner, scopes: [scope], provenance, now: now() })
  if (!registered.ok) return registered
  const { id, version } = registered.version
  await saveSkillCases(db, id, cases)
  await saveSkillTest(db, report, { by: 'learner', now: now() })
  if (registered.version.state === 'candidate' && actsByItself(parts, manifest as Manifest)) {
    const reason = `its tests passed, and each of its calls can be undone or repeated (in scope ${scope})`
    await skills.setState(db, { id, version, from: 'candidate', state: 'active', reason, now: now() })
  }
  return { ok: true, id, version }
}

/** With the mode `auto`, a skill acts without a person if no call of it is final. */
function actsByItself({ settings, toolbox }: Parts, { plan }: Manifest): boolean {
  const facts = factsOf(toolbox.all)
  const isSafe = (tool: string): boolean => facts.get(tool)?.repeatable === true || facts.get(tool)?.inverse != null
  return settings().learning.mode === 'auto' && plan.steps.every(({ tool }) => isSafe(tool))
}

/** A learned skill never does what its agent cannot do, not even to undo a step. */
async function lacks({ toolbox }: Parts, { plan }: Manifest): Promise<string | null> {
  await toolbox.ready()
  for (const { tool } of [...plan.steps, ...plan.compensation]) {
    const found = toolbox.forPlan(tool)
    if (!found.ok) return found.detail
  }
  return null
}
