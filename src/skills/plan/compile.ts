import type { Refused, Result } from '../../base/result.ts'
import { undeclaredGlobal } from '../../tools/tool-keys.ts'
import { byteLength, type Json, type JsonFields } from '../../base/json.ts'
import { limits } from '../../base/limits.ts'
import type { ExpressionScope } from '../cel/expression.ts'
import type { Manifest, ManifestStep } from '../manifest/manifest.ts'
import { writeBlackboard, type Blackboard } from './blackboard.ts'
import { bindInputs, fitsType } from './inputs.ts'
import { resolveKey, resolveTemplate, type TemplateScope } from './template.ts'
import { turnOf, unrolledCompensation, unrolledSteps, type CompiledCompensation, type CompiledStep, type ItemOf } from './unroll.ts'

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
