import type { JsonFields } from '../../base/json.ts'
import type { PolicyQuestion, PolicyVerdict } from '../../contract/policy.ts'
import { baseRoles, hasRole } from '../../contract/principal.ts'
import type { SkillState } from '../../contract/skill.ts'
import { compileExpression } from '../cel/expression.ts'
import { compatOutcome, policyOutcome } from './outcomes.ts'
import type { Manifest } from '../manifest/manifest.ts'
import { emptyBlackboard } from '../plan/blackboard.ts'
import type { GateRequest } from './decision.ts'
import { factsOf } from './gate.ts'

/**
 * `skill` is null if the asker may not read it. `open`: the environments that take a version
 * without a promotion. `promoted`: those to which this version was promoted.
 */
export type PolicyCase = {
  skill: { manifest: Manifest; state: SkillState } | null
  open: readonly string[]
  promoted: readonly string[]
  now: number
}

/**
 * The control plane's answer to a question. The asker's own gate decides on everything that needs
 * its blackboard: approvals, residency, and conditions that read more than the given inputs.
 */
export function judgePolicy(question: PolicyQuestion, { skill, open, promoted, now }: PolicyCase): PolicyVerdict {
  const name = `${question.skill_id}@${question.version}`
  const closed = [question.env].flat().filter((env) => !open.includes(env) && !promoted.includes(env))
  const promote = `it has not been promoted to ${closed.join(' and ')}`
  if (!skill) {
    if (closed.length > 0) return { verdict: 'needs_promotion', reason: `the control plane does not know ${name}, and ${promote}` }
    return { verdict: 'allow', reason: `the control plane does not know ${name}, and the environment is open` }
  }
  const { verdict, reason } = judgeVersion(requestOf(question, { ...skill, now }))
  if (verdict !== 'allow' || closed.length === 0) return { verdict, reason: verdict === 'allow' ? `${name} may run` : `${name}: ${reason}` }
  return { verdict: 'needs_promotion', reason: `${name}: ${promote}` }
}

function judgeVersion(request: GateRequest): PolicyVerdict {
  const place = compatOutcome(request.manifest, request.compat)
  const { verdict, needs } = place.needs.length > 0 ? { verdict: 'deny', needs: place.needs } : policyOutcome(request, factsOf(request))
  const reason = needs.map(({ message }) => message).join('; ')
  return { verdict: verdict === 'allow' || verdict === 'needs_promotion' ? verdict : 'deny', reason }
}

function requestOf(
  { project = null, env, roles, inputs }: PolicyQuestion,
  { manifest, state, now }: { manifest: Manifest; state: SkillState; now: number },
): GateRequest {
  const { compat, policy } = manifest
  const known = (inputs ?? {}) as JsonFields
  const { residency: _residency, ...shared } = policy
  return {
    manifest: {
      ...manifest,
      compat: { ...(compat.env && { env: compat.env }), ...(compat.project && { project: compat.project }) },
      policy: { ...shared, needs_approval_if: [], deny_if: policy.deny_if.filter((expression) => readsOnly(expression, known)) },
    },
    state,
    compat: { env: [env].flat(), project, toolset: null, repo: null },
    inputs: known,
    inputs_from: 'caller',
    text: '',
    goal_labels: [],
    entity_types: [],
    blackboard: emptyBlackboard(),
    tools: [],
    recent_success: false,
    roles: [...new Set([...roles, ...baseRoles.filter((role) => hasRole({ roles }, role))])],
    last_run_at: null,
    running: 0,
    now,
  }
}

/** True for an expression that reads given inputs and nothing else. */
function readsOnly(source: string, inputs: JsonFields): boolean {
  const compiled = compileExpression(source)
  if (!compiled.ok || compiled.expression.functions.size > 0) return false
  return compiled.expression.paths.every(([root = '', name]) =>
    root === 'inputs' || root === 'args' ? name !== undefined && Object.hasOwn(inputs, name) : Object.hasOwn(inputs, root),
  )
}
