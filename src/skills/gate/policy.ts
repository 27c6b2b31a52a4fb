import { holdsReference } from '../plan/template.ts'
import { evaluate } from '../cel/expression.ts'
import { whyAnchored } from '../../tools/define-tool.ts'
import type { GateCheck, GateRequest, Need, StageOutcome, GateVerdict } from './decision.ts'
import { combined, inWords, outcome, shownValues, type Facts } from './preconditions.ts'
import { sensitiveIn } from './mask.ts'

type PolicyOutcome = StageOutcome & { verdict: Extract<GateVerdict, 'allow' | 'deny' | 'needs_approval' | 'needs_promotion'> }

/** Denials win: promotion or approval is requested only if nothing denies. */
export function policyOutcome(request: GateRequest, facts: Facts): PolicyOutcome {
  const { checks, needs } = combined([
    rolesOutcome(request),
    sensitiveOutcome(request, facts),
    residencyOutcome(request),
    deniedOutcome(request, facts),
    stateOutcome(request),
    refusedHereOutcome(request),
    controlPlaneOutcome(request),
  ])
  if (needs.length > 0) {
    const only_promotion = request.control_plane?.verdict === 'needs_promotion' && needs.every(({ need }) => need === 'control_plane')
    return { verdict: only_promotion ? 'needs_promotion' : 'deny', checks, needs }
  }
  if (request.state === 'candidate') {
    const message = 'promote this version: it is a candidate'
    return {
      verdict: 'needs_promotion',
      checks: [...checks, { check: 'promotion', passed: false, detail: message }],
      needs: [{ need: 'promotion', message }],
    }
  }
  const approval = approvalOutcome(request, facts)
  return { verdict: approval.verdict, checks: [...checks, ...approval.checks], needs: approval.needs }
}

/** No mode and no manifest overrules the operators of a scope. */
function refusedHereOutcome({ refused_here = false }: GateRequest): StageOutcome {
  if (!refused_here) return { checks: [], needs: [] }
  const message = 'the setting refused_skills of this scope names it'
  return outcome({ check: 'refused here', detail: message, needs: [{ need: 'not_refused_here', message }] })
}

function controlPlaneOutcome({ control_plane }: GateRequest): StageOutcome {
  if (!control_plane) return { checks: [], needs: [] }
  const { verdict, reason, cached } = control_plane
  const detail = `${verdict}${cached ? ' (cached)' : ''}: ${reason}`
  const needs: Need[] = verdict === 'allow' ? [] : [{ need: 'control_plane', message: `the control plane must allow it: ${reason}` }]
  return outcome({ check: 'control plane', detail, needs })
}

/** Closed until someone says who may. */
function rolesOutcome({ manifest: { policy }, roles }: GateRequest): StageOutcome {
  const allowed = policy.allow_roles ?? []
  if (allowed.length === 0) {
    const message = 'set policy.allow_roles: without it nobody may run the skill'
    return outcome({ check: 'roles', detail: message, needs: [{ need: 'policy_field', field: 'policy.allow_roles', message }] })
  }
  const has = allowed.find((role) => roles.includes(role))
  if (has !== undefined) return outcome({ check: 'roles', detail: `the caller is ${has}`, needs: [] })
  const message = `the caller must have the role ${allowed.join(' or ')}`
  return outcome({ check: 'roles', detail: message, needs: [{ need: 'role', any_of: [...allowed], message }] })
}

/** A model has seen its inputs and plans record theirs: secrets may only come from bindings. */
function sensitiveOutcome({ manifest, inputs_from }: GateRequest, { bound }: Facts): StageOutcome {
  const emails = manifest.policy.pii === 'deny'
  const needs = manifest.signature.inputs.flatMap(({ name, secret }): Need[] => {
    const value = bound.inputs[name]
    if (value === undefined) return []
    if (secret && bound.from[name] === 'given' && inputs_from === 'model') {
      return [
        { need: 'slot_not_from_model', slot: name, message: `${name} is secret: bind it to the blackboard; a model must not give it` },
      ]
    }
    if (bound.from[name] === 'given' && holdsReference(value)) {
      const message = `${name} names a secret of the deployment, which only the blackboard of the scope's settings may do`
      return [{ need: 'slot_without_secret', slot: name, looks_like: 'secret_reference', message }]
    }
    const looks_like = secret ? null : sensitiveIn(value, { emails })
    if (looks_like === null) return []
    return [
      { need: 'slot_without_secret', slot: name, looks_like, message: `${name} holds what looks like a ${looks_like.replace('_', ' ')}` },
    ]
  })
  return outcome({ check: 'sensitive values', detail: needs.map(({ message }) => message).join('; ') || 'none', needs })
}

function residencyOutcome({ manifest: { policy }, blackboard }: GateRequest): StageOutcome {
  if (policy.residency === undefined) return { checks: [], needs: [] }
  const region = Object.hasOwn(blackboard.env, 'region') ? blackboard.env['region'] : undefined
  if (typeof region === 'string' && policy.residency.includes(region)) return outcome({ check: 'residency', detail: region, needs: [] })
  const message = `env.region must be ${policy.residency.join(' or ') || 'one that policy.residency names'}`
  return outcome({ check: 'residency', detail: message, needs: [{ need: 'residency', any_of: [...policy.residency], message }] })
}

/** An expression that cannot be evaluated denies. */
function deniedOutcome({ manifest: { policy } }: GateRequest, facts: Facts): StageOutcome {
  const outcomes = policy.deny_if.map((expression): StageOutcome => {
    const evaluation = evaluate(expression, facts.scope, facts.session)
    const check = `deny_if ${expression}`
    if (evaluation.ok && !evaluation.value) return outcome({ check, detail: 'does not hold', needs: [] })
    const values = shownValues(expression, facts)
    const why = evaluation.ok ? `holds: ${inWords(values)}` : `cannot be evaluated: ${facts.mask.text(evaluation.detail)}`
    return outcome({
      check,
      detail: why,
      needs: [{ need: 'not_denied', expression, values, message: `Denied by the policy: ${expression} ${why}` }],
    })
  })
  return combined(outcomes)
}

function stateOutcome({ state }: GateRequest): StageOutcome {
  if (state !== 'deprecated') return outcome({ check: 'state', detail: state, needs: [] })
  const message = 'use another version: this one is deprecated'
  return outcome({ check: 'state', detail: message, needs: [{ need: 'state', state, message }] })
}

function approvalOutcome(
  { manifest: { policy }, approved = false, anchored = [], control_plane }: GateRequest,
  facts: Facts,
): PolicyOutcome {
  const checks: GateCheck[] = []
  if (control_plane?.approval !== undefined) {
    const detail = control_plane.approval
    checks.push({ check: 'a person here', passed: approved, detail })
    const needs: Need[] = [{ need: 'person', message: `someone here must approve it: ${detail}` }]
    if (!approved) return { verdict: 'needs_approval', checks, needs }
  }
  if (anchored.length > 0) {
    const message = whyAnchored(anchored)
    checks.push({ check: 'anchors', passed: approved, detail: message })
    if (!approved) return { verdict: 'needs_approval', checks, needs: [{ need: 'person', message }] }
  }
  for (const expression of policy.needs_approval_if) {
    const evaluation = evaluate(expression, facts.scope, facts.session)
    const check = `needs_approval_if ${expression}`
    if (!evaluation.ok) {
      const message = `${expression} cannot be evaluated: ${facts.mask.text(evaluation.detail)}`
      const needs: Need[] = [{ need: 'not_denied', expression, values: shownValues(expression, facts), message }]
      return { verdict: 'deny', checks: [...checks, { check, passed: false, detail: message }], needs }
    }
    checks.push({ check, passed: !evaluation.value || approved, detail: evaluation.value ? 'holds' : 'does not hold' })
    if (!evaluation.value || approved) continue
    return {
      verdict: 'needs_approval',
      checks,
      needs: [{ need: 'approval', expression, message: `someone must approve it, for ${expression}` }],
    }
  }
  return { verdict: 'allow', checks, needs: [] }
}
