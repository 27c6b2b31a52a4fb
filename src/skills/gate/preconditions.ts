import { compileExpression, evaluate, valuesRead, type ExpressionScope, type ProbeSession } from '../cel/expression.ts'
import type { BoundInputs } from '../plan/blackboard.ts'
import { parsePath, readPath } from '../plan/template.ts'
import { parserFor } from '../plan/slots.ts'
import type { GateCheck, GateRequest, Need, StageOutcome } from './decision.ts'
import { shownValue, type SecretMask } from './mask.ts'
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
export const outcome = ({ check, detail, needs }: { check: string; detail: string; needs: Need[] }): StageOutcome => ({
  checks: [{ check, passed: needs.length === 0, detail }],
  needs,
})

export const combined = (parts: readonly StageOutcome[]): StageOutcome => ({
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

function paceOutcome({ manifest: { activation }, last_run_at, running, now }: GateRequest): StageOutcome {
  const until = last_run_at === null ? null : last_run_at + activation.cooldown_s * 1000
  // A run that lies further ahead than the cooldown is long was timed by a clock that was ahead.
  const rests = until !== null && now < until && until - now <= 2 * activation.cooldown_s * 1000
  const isFull = running >= activation.max_concurrency
  const needs: Need[] = []
  if (rests) needs.push({ need: 'cooldown', until, message: `wait until ${isoOf(until)}: it ran less than ${activation.cooldown_s} s ago` })
  if (isFull) {
    const message = `wait for a run to end: ${running} of at most ${activation.max_concurrency} run`
    needs.push({ need: 'concurrency', running, max: activation.max_concurrency, message })
  }
  const checks: GateCheck[] = [
    { check: 'cooldown', passed: !rests, detail: rests ? `until ${isoOf(until)}` : 'over' },
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

export const shownValues = (expression: string, { scope, mask }: Facts): { path: string; value: string }[] =>
  valuesRead(expression, scope).map(({ path, value }) => ({ path: mask.text(path), value: shownValue(mask, value) }))

export const inWords = (values: readonly { path: string; value: string }[]): string =>
  values.map(({ path, value }) => `${path} = ${value}`).join(', ') || 'it reads nothing'

/** A time outside of the range of Date is reported as a number. */
function isoOf(time: number): string {
  const date = new Date(time)
  return Number.isNaN(date.getTime()) ? String(time) : date.toISOString()
}
