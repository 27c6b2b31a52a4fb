import { holdsReference } from '../plan/template.ts'
import { parsePath, readPath, evaluate, compileExpression, valuesRead, type ExpressionScope, type ProbeSession } from '../cel/expression.ts'
import { whyAnchored, whyDoubted } from '../../tools/define-tool.ts'
import type { GateCheck, GateRequest, Need, StageOutcome, GateVerdict } from './decision.ts'
import { sensitiveIn, shownValue, type SecretMask } from './mask.ts'
import type { BoundInputs } from '../plan/blackboard.ts'
import { parserFor } from '../plan/slots.ts'
import { COMPAT_FIELDS, fitsField, listOf, type Place } from '../manifest/compat.ts'
import type { Manifest } from '../manifest/manifest.ts'

/**
 * Checks that a skill may run in this place. Fields that the skill does not name are not checked.
 */
export function compatOutcome({ compat }: Manifest, place: Place): StageOutcome {
  const checks: GateCheck[] = []
  const needs: Need[] = []
  for (const field of COMPAT_FIELDS) {
    const wanted = listOf(compat[field])
    if (wanted.length === 0) continue
    const passed = fitsField(compat, place, field)
    const detail = `the skill is for ${wanted.join(' or ')}; this is ${listOf(place[field]).join(' and ') || 'not known'}`
    checks.push({ check: `compat.${field}`, passed, detail })
    if (!passed) needs.push({ need: 'compat', field, message: `compat.${field}: ${detail}` })
  }
  return { checks, needs }
}

export type Facts = { bound: BoundInputs; scope: ExpressionScope; session: ProbeSession; mask: SecretMask }

/** Checks slots, tools, data, pace and invariants, and reports all failures at once. */
export function preconditionsOutcome(request: GateRequest, facts: Facts): StageOutcome {
  const parts = [
    slotsOutcome(request, facts),
    toolsOutcome(request),
    dataOutcome(request, facts),
    paceOutcome(request),
    invariantsOutcome(request, facts),
  ]
  return combined(parts)
}

/** A check, which passes if nothing is needed. */
const outcome = ({ check, detail, needs }: { check: string; detail: string; needs: Need[] }): StageOutcome => ({
  checks: [{ check, passed: needs.length === 0, detail }],
  needs,
})

const combined = (parts: readonly StageOutcome[]): StageOutcome => ({
  checks: parts.flatMap(({ checks }) => checks),
  needs: parts.flatMap(({ needs }) => needs),
})

function slotsOutcome({ manifest }: GateRequest, { bound, mask }: Facts): StageOutcome {
  const needs: Need[] = [
    ...bound.missing.map(({ name, type }): Need => {
      const parsable = parserFor(manifest, name) !== null
      return { need: 'slot', slot: name, parsable, message: `give the input ${name} (${type})` }
    }),
    ...bound.wrong.map(({ name, type }): Need => ({
      need: 'slot_type',
      slot: name,
      type,
      message: `the input ${name} must be of type ${type}`,
    })),
    ...bound.unknown.map((name): Need => {
      const declared = manifest.signature.inputs.map((input) => input.name).join(', ') || 'none'
      return {
        need: 'no_such_slot',
        slot: mask.text(name.slice(0, 64)),
        message: `leave out ${mask.text(name.slice(0, 64))}: the inputs are ${declared}`,
      }
    }),
  ]
  const detail = needs.map(({ message }) => message).join('; ') || `all of ${Object.keys(bound.inputs).length} inputs fit`
  return outcome({ check: 'slots', detail, needs })
}

function toolsOutcome({ manifest: { preconditions, plan }, tools, absent_tools = {} }: GateRequest): StageOutcome {
  const there = new Set(tools)
  const named = [...preconditions.tools_available, ...plan.steps.map(({ tool }) => tool), ...plan.compensation.map(({ tool }) => tool)]
  const absent = [...new Set(named)].filter((tool) => !there.has(tool))
  const why = (tool: string) => (Object.hasOwn(absent_tools, tool) ? `: ${absent_tools[tool]}` : '')
  const needs = absent.map((tool): Need => ({ need: 'tool', tool, message: `the tool ${tool} must be available${why(tool)}` }))
  const detail = absent.length === 0 ? 'all tools are available' : `not available: ${absent.join(', ')}`
  return outcome({ check: 'tools', detail, needs })
}

/** A required slot that is missing is reported once, as a slot. */
function dataOutcome({ manifest, blackboard }: GateRequest, { bound }: Facts): StageOutcome {
  const asked = new Set(bound.missing.map(({ name }) => name))
  const absent = manifest.preconditions.data_present.filter((name) => {
    if (!name.includes('.')) return !asked.has(name) && !Object.hasOwn(bound.inputs, name)
    const found = readPath(blackboard, parsePath(name) ?? [])
    return !found.found || found.value === null
  })
  const needs = absent.map((path): Need => ({ need: 'data', path, message: `${path} must have a value` }))
  const detail = absent.length === 0 ? 'all data is there' : `no value: ${absent.join(', ')}`
  return outcome({ check: 'data', detail, needs })
}

function paceOutcome({ manifest: { activation }, last_run_at, running, answered = false, now }: GateRequest): StageOutcome {
  const until = last_run_at === null ? null : last_run_at + activation.cooldown_s * 1000
  // A run that lies further ahead than the cooldown is long was timed by a clock that was ahead.
  const rests = !answered && until !== null && now < until && until - now <= 2 * activation.cooldown_s * 1000
  const isFull = running >= activation.max_concurrency
  const needs: Need[] = []
  if (rests) needs.push({ need: 'cooldown', until, message: `wait until ${isoOf(until)}: it ran less than ${activation.cooldown_s} s ago` })
  if (isFull) {
    const message = `wait for a run to end: ${running} of at most ${activation.max_concurrency} run`
    needs.push({ need: 'concurrency', running, max: activation.max_concurrency, message })
  }
  const checks: GateCheck[] = [
    { check: 'cooldown', passed: !rests, detail: rests ? `until ${isoOf(until)}` : answered ? 'the first outputs answer it' : 'over' },
    { check: 'concurrency', passed: !isFull, detail: `${running} of at most ${activation.max_concurrency} run` },
  ]
  return { checks, needs }
}

function invariantsOutcome({ manifest }: GateRequest, facts: Facts): StageOutcome {
  const outcomes = manifest.preconditions.invariants.map((expression): StageOutcome => {
    const check = `invariant ${expression}`
    if (waitsForSlot(expression, facts))
      return { checks: [{ check, passed: false, detail: 'open: it reads a slot that is missing' }], needs: [] }
    const evaluation = evaluate(expression, facts.scope, facts.session)
    if (evaluation.ok && evaluation.value) return outcome({ check, detail: 'holds', needs: [] })
    const values = shownValues(expression, facts)
    const why = evaluation.ok ? `does not hold: ${inWords(values)}` : `cannot be evaluated: ${facts.mask.text(evaluation.detail)}`
    const message = evaluation.ok ? `Precondition failed: ${expression}. ${inWords(values)}` : `Precondition ${expression} ${why}`
    return outcome({ check, detail: why, needs: [{ need: 'invariant', expression, values, message }] })
  })
  return combined(outcomes)
}

function waitsForSlot(expression: string, { bound }: Facts): boolean {
  const compiled = compileExpression(expression)
  if (!compiled.ok || bound.missing.length === 0) return false
  const missing = new Set(bound.missing.map(({ name }) => name))
  return compiled.expression.paths.some(([root = '', name]) =>
    root === 'inputs' || root === 'args' ? name === undefined || missing.has(name) : missing.has(root),
  )
}

const shownValues = (expression: string, { scope, mask }: Facts): { path: string; value: string }[] =>
  valuesRead(expression, scope).map(({ path, value }) => ({ path: mask.text(path), value: shownValue(mask, value) }))

const inWords = (values: readonly { path: string; value: string }[]): string =>
  values.map(({ path, value }) => `${path} = ${value}`).join(', ') || 'it reads nothing'

/** A time outside of the range of Date is reported as a number. */
function isoOf(time: number): string {
  const date = new Date(time)
  return Number.isNaN(date.getTime()) ? String(time) : date.toISOString()
}

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
  { manifest: { policy }, approved = false, anchored = [], unasked = [], origins, control_plane }: GateRequest,
  facts: Facts,
): PolicyOutcome {
  const checks: GateCheck[] = []
  if (control_plane?.approval !== undefined) {
    const detail = control_plane.approval
    checks.push({ check: 'a person here', passed: approved, detail })
    const needs: Need[] = [{ need: 'person', message: `someone here must approve it: ${detail}` }]
    if (!approved) return { verdict: 'needs_approval', checks, needs }
  }
  if (unasked.length > 0) {
    const message = `the edit needs a question of its own: ${unasked.join('; ')}`
    checks.push({ check: 'edit', passed: false, detail: message })
    return { verdict: 'deny', checks, needs: [{ need: 'person', message }] }
  }
  if (anchored.length > 0) {
    const message = whyAnchored(anchored)
    checks.push({ check: 'anchors', passed: approved, detail: message })
    if (!approved) return { verdict: 'needs_approval', checks, needs: [{ need: 'person', message }] }
  }
  if (origins) {
    const { mode, said } = origins
    const detail = said.join('; ')
    checks.push({ check: 'origins', passed: approved || mode === 'observe', detail })
    const message = mode === 'ask' ? whyDoubted(said) : detail
    if (!approved && mode !== 'observe')
      return { verdict: mode === 'ask' ? 'needs_approval' : 'deny', checks, needs: [{ need: 'person', message }] }
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
