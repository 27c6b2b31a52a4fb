import type { Refused, Result } from '../../base/result.ts'
import { undeclaredGlobal, anchorsTouched } from '../../tools/define-tool.ts'
import { byteLength, type Json, type JsonFields, mapJson } from '../../base/json.ts'
import { limits } from '../../base/limits.ts'
import type { ExpressionScope } from '../cel/expression.ts'
import type { Manifest, ManifestStep, Compensation } from '../manifest/manifest.ts'
import { writeBlackboard, type Blackboard, bindInputs, fitsType } from './blackboard.ts'
import { isSecretReference, placesIn, resolveKey, resolveTemplate, type TemplatePlace, type TemplateScope } from './template.ts'
import type { Anchor } from '../../contract/settings/anchors.ts'

export type Planned = { manifest: Manifest; inputs: JsonFields; blackboard: Blackboard }

/**
 * The anchors that the steps and compensations of a plan touch, by what is known before it runs.
 * Arguments from the outputs of steps are compared when their step calls its tool.
 */
export function anchorsOf(anchors: readonly Anchor[] = [], planned: Planned): string[] {
  if (anchors.length === 0) return []
  const known = knownIn(planned, () => null)
  const { steps, compensation } = planned.manifest.plan
  const touched = [...steps, ...compensation].flatMap(({ tool, args }) => anchorsTouched(anchors, { tool, input: known(args) }))
  return [...new Set(touched)]
}

/** Fills templates with what is known before a plan runs, and the others by `otherwise`. */
function knownIn({ manifest, inputs, blackboard }: Planned, otherwise: (template: string) => Json): (args: JsonFields) => unknown {
  const scope = templateScope({ inputs: bindInputs(manifest, inputs, blackboard).inputs, blackboard }, {})
  const filled = (value: unknown): unknown => {
    if (typeof value !== 'string') return value
    const resolved = resolveTemplate(value, scope)
    return resolved.ok ? resolved.value : otherwise(value)
  }
  return (args) => mapJson(args, filled)
}

/** The inputs that the manifest declares as destinations. */
export function declaredDestinations({ manifest, inputs, blackboard }: Planned): JsonFields {
  const { inputs: bound } = bindInputs(manifest, inputs, blackboard)
  const names = manifest.signature.inputs.flatMap(({ name, destination }) => (destination === true ? [name] : []))
  return Object.fromEntries(names.flatMap((name) => (Object.hasOwn(bound, name) ? [[name, bound[name] ?? null]] : [])))
}

/**
 * The calls of a plan with what its author did not write: constants are gone, and an argument that
 * is a template is the list of its parts. What steps give is not known yet: `given` says which
 * arguments have it.
 */
export function openArguments({ manifest, inputs, blackboard }: Planned): { tool: string; args: unknown; given: GivenBefore[] }[] {
  const { inputs: bound } = bindInputs(manifest, inputs, blackboard)
  const scope = templateScope({ inputs: bound, blackboard }, {})
  const safe = new Set(manifest.signature.inputs.flatMap(({ name, destination }) => (destination === false ? [name] : [])))
  const is_mined = manifest.provenance.mined_from_traces.length > 0
  const partsOf =
    (items: readonly Json[]) =>
    (value: unknown): unknown => {
      if (typeof value === 'object') return isSecretReference(value) ? null : value
      const places = placesIn(value)
      // A mined plan has constants of what it was mined from, which no person has read.
      if (places.length === 0) return is_mined ? value : null
      return places.flatMap(({ place, path }): Json[] => {
        if (path?.[0] === 'inputs' && safe.has(String(path[1]))) return []
        const scopes = isItem(path) ? items.map((item) => withItem(scope, item)) : [scope]
        return scopes.flatMap((one) => {
          const resolved = resolveTemplate(`{{${place}}}`, one)
          return resolved.ok && !isSecretReference(resolved.value) ? [resolved.value] : []
        })
      })
    }
  const { steps, compensation } = manifest.plan
  return [...steps, ...compensation].map(({ tool, args, ...step }) => {
    const list = 'for_each' in step && step.for_each ? step.for_each.list : null
    const resolved = list === null ? null : resolveTemplate(list, scope)
    const items = resolved?.ok && Array.isArray(resolved.value) ? resolved.value : []
    return { tool, args: mapJson(args, partsOf(items)), given: givenBefore(args, list) }
  })
}

/**
 * The calls of the steps of a plan with what is known before it runs; other templates stay.
 * `constants`: arguments that a person wrote into the manifest.
 */
export function knownArguments(planned: Planned): { tool: string; args: JsonFields; constants: string[] }[] {
  const { manifest } = planned
  const known = knownIn(planned, (template) => template)
  const is_mined = manifest.provenance.mined_from_traces.length > 0
  return manifest.plan.steps.map(({ tool, args }) => {
    const constants = is_mined ? [] : Object.keys(args).filter((name) => placesIn(args[name]).length === 0)
    return { tool, args: known(args) as JsonFields, constants }
  })
}

/** An argument that has an output of an earlier step. `path`: of the field in that output. */
export type GivenBefore = { at: string; step: string; path: string }
const isItem = (path: TemplatePlace['path']): boolean => path?.[0] === 'work' && path[1] === 'item'

function givenBefore(args: JsonFields, list: string | null): GivenBefore[] {
  const inSteps = (path: TemplatePlace['path'], rest: readonly unknown[] = []) =>
    path?.[0] === 'work' && path[1] === 'steps'
      ? { step: String(path[2]), path: [...path.slice(3), ...rest].filter(isName).join('.') }
      : null
  const [listed] = list === null ? [] : placesIn(list)
  return placesIn(args).flatMap(({ path, at }): GivenBefore[] => {
    const found = isItem(path) ? inSteps(listed?.path ?? null, path?.slice(2)) : inSteps(path)
    return found ? [{ at: at.split('.').filter(isName).join('.'), ...found }] : []
  })
}

/** Places in lists have no name of their own. */
const isName = (part: unknown): boolean => typeof part === 'string' && !/^\d+$/.test(part)

/**
 * A step as it runs. Its output can be named by `place`, its index in the manifest, and by `gives`.
 * A step with `for_each` is as many steps as its list may have items; `turn` counts them.
 */
export type CompiledStep = ManifestStep & { index: number; name: string; place: number; gives: string; turn: number | null }
/** `undoes` is the index of a step, or null for the plan as a whole. */
export type CompiledCompensation = Compensation & ItemOf & { index: number; undoes: number | null }

/** The list of a call and the number of its item; null without a list. */
type ItemOf = Pick<ManifestStep, 'for_each'> & { turn: number | null }

/** All steps that a run may make, so that each has its own place in the journal and its own key. */
export function unrolledSteps({ steps }: Manifest['plan']): CompiledStep[] {
  const all = steps.flatMap((step, place): Omit<CompiledStep, 'index'>[] => {
    const gives = step.name ?? String(place)
    if (!step.for_each) return [{ ...step, place, gives, name: gives, turn: null }]
    return Array.from({ length: step.for_each.at_most }, (_, turn) => ({ ...step, place, gives, name: `${gives}.${turn}`, turn }))
  })
  return all.map((step, index): CompiledStep => ({ ...step, index }))
}

/** A compensation of a step that runs for each item undoes each of its calls by itself. */
function unrolledCompensation(
  { compensation }: Manifest['plan'],
  steps: readonly CompiledStep[],
): CompiledCompensation[] | { lost: number } {
  const all: Omit<CompiledCompensation, 'index'>[] = []
  for (const [index, entry] of compensation.entries()) {
    const { step } = entry
    if (step === undefined) {
      all.push({ ...entry, undoes: null, turn: null })
      continue
    }
    const undone = steps.filter(({ gives, place }) => (typeof step === 'number' ? place === step : gives === step))
    if (undone.length === 0) return { lost: index }
    all.push(...undone.map(({ index: undoes, turn, for_each }) => ({ ...entry, undoes, turn, ...(for_each && { for_each }) })))
  }
  return all.map((entry, index) => ({ ...entry, index }))
}

/** `over`: the list has fewer items. `item` is undefined for a call without a list. */
type ItemTurn = Result<{ item: Json | undefined; over: boolean }>

export function turnOf({ for_each, turn }: ItemOf, scope: TemplateScope): ItemTurn {
  if (!for_each || turn === null) return { ok: true, item: undefined, over: false }
  const resolved = resolveTemplate(for_each.list, scope, 'for_each.list')
  if (!resolved.ok) return { ok: false, detail: resolved.detail }
  const { value: list } = resolved
  if (!Array.isArray(list)) return { ok: false, detail: `for_each.list: ${for_each.list} is not a list` }
  if (list.length > for_each.at_most)
    return { ok: false, detail: `for_each.list: it has ${list.length} items; at most ${for_each.at_most} are allowed` }
  return { ok: true, item: list[turn], over: turn >= list.length }
}

/** A plan for one run, with its inputs and key. Arguments stay templates until their step. */
export type CompiledPlan = {
  manifest: Manifest
  inputs: JsonFields
  blackboard: Blackboard
  /** The key of the skill and its inputs: a repeated run gets the last successful outputs. */
  idempotence_key: string | null
  budget: Manifest['plan']['budget']
  steps: CompiledStep[]
  compensation: CompiledCompensation[]
}

type CompiledResult = { ok: true; plan: CompiledPlan } | Refused<'missing_input' | 'bad_key' | 'bad_step'>

const LONGEST_KEY = 300

export function compilePlan(manifest: Manifest, given: JsonFields, blackboard: Blackboard): CompiledResult {
  const { inputs, missing } = bindInputs(manifest, given, blackboard)
  if (missing.length > 0) return { ok: false, reason: 'missing_input', detail: `no value: ${missing.map(({ name }) => name).join(', ')}` }
  const key = keyOf(manifest, templateScope({ inputs, blackboard }, {}))
  if (!key.ok) return key
  const steps = unrolledSteps(manifest.plan)
  const compensation = unrolledCompensation(manifest.plan, steps)
  if ('lost' in compensation) {
    const { step } = manifest.plan.compensation[compensation.lost] ?? {}
    return { ok: false, reason: 'bad_step', detail: `plan.compensation.${compensation.lost}.step: there is no step called ${step}` }
  }
  return { ok: true, plan: { manifest, inputs, blackboard, idempotence_key: key.key, budget: manifest.plan.budget, steps, compensation } }
}

function keyOf(manifest: Manifest, scope: TemplateScope): { ok: true; key: string | null } | Refused<'bad_key'> {
  const template = manifest.plan.idempotence_key
  if (template === undefined) return { ok: true, key: null }
  const resolved = resolveKey(template, scope, 'plan.idempotence_key')
  if (!resolved.ok) return { ok: false, reason: 'bad_key', detail: resolved.detail }
  const text = resolved.value
  const refusal = undeclaredGlobal(template, text)
  if (refusal !== null) return { ok: false, reason: 'bad_key', detail: `plan.idempotence_key: ${refusal}` }
  if (text.length <= LONGEST_KEY) return { ok: true, key: `${manifest.id}:${text}` }
  return { ok: false, reason: 'bad_key', detail: `plan.idempotence_key has ${text.length} characters; ${LONGEST_KEY} are allowed` }
}

/** The outputs of the steps so far, by the names of the steps and by their indices. */
export type StepOutputs = Readonly<Record<string, Json>>

type ResolvedStep = Result<{ args: JsonFields }>

type Call = Pick<ManifestStep, 'args'> & ItemOf

/** The arguments of a step or a compensation, now that what they need is there. */
export function resolveStep({ args, ...loop }: Call, plan: CompiledPlan, outputs: StepOutputs): ResolvedStep {
  const scope = templateScope(plan, outputs)
  const turn = turnOf(loop, scope)
  if (!turn.ok) return turn
  const resolved = resolveTemplate(args, withItem(scope, turn.item), 'args')
  if (!resolved.ok) return { ok: false, detail: resolved.detail }
  const bytes = byteLength(JSON.stringify(resolved.value))
  if (bytes <= limits.arguments_bytes) return { ok: true, args: resolved.value as JsonFields }
  return { ok: false, detail: `args: they take ${bytes} bytes as JSON; at most ${limits.arguments_bytes} are allowed` }
}

/** The variables of a guard, with the arguments if they could be resolved. */
export function guardScope(
  plan: CompiledPlan,
  outputs: StepOutputs,
  { resolved, item }: { resolved: ResolvedStep; item: Json | undefined },
): ExpressionScope {
  const { ctx, env, work, policy } = withItem(templateScope(plan, outputs), item)
  return { ctx, env, work, policy, inputs: plan.inputs, args: resolved.ok ? resolved.args : undefined }
}

type Mapped = Result<{ outputs: JsonFields; blackboard: Blackboard }>

/** Maps the steps' outputs to the plan's outputs, and writes the bound ones to the blackboard. */
export function resultMap(plan: CompiledPlan, outputs: StepOutputs): Mapped {
  const resolved = resolveTemplate(plan.manifest.plan.result_map, templateScope(plan, outputs), 'plan.result_map')
  if (!resolved.ok) return { ok: false, detail: resolved.detail }
  const results = resolved.value as JsonFields
  for (const { name, type } of plan.manifest.signature.outputs) {
    if (!fitsType(type, results[name] ?? null)) return { ok: false, detail: `the output ${name} is not of type ${type}` }
  }
  return writeOutputs(plan, results)
}

export function writeOutputs({ manifest, blackboard }: CompiledPlan, outputs: JsonFields): Mapped {
  const bindings = Object.entries(manifest.signature.blackboard_bindings.outputs)
  const paths = bindings.map(([, path]) => path)
  let current = blackboard
  for (const [name, path] of bindings) {
    if (!Object.hasOwn(outputs, name)) continue
    const written = writeBlackboard(current, path, outputs[name] ?? null, paths)
    if (!written.ok) return { ok: false, detail: written.detail }
    current = written.blackboard
  }
  return { ok: true, outputs, blackboard: current }
}

const withItem = (scope: PlanScope, item: Json | undefined): PlanScope =>
  item === undefined ? scope : { ...scope, work: { ...scope.work, item } }

type PlanScope = TemplateScope & Blackboard

export function templateScope({ inputs, blackboard }: Pick<CompiledPlan, 'inputs' | 'blackboard'>, steps: StepOutputs): PlanScope {
  return { ...blackboard, inputs, work: { ...blackboard.work, steps } }
}
