import { isJsonFields, type Json, type JsonFields } from '../../../base/json.ts'
import { textOf } from '../../../base/template.ts'
import { clopperPearsonLow } from '../../../evidence/binomial.ts'
import { unitFailure } from '../../../skills/ci/ci.ts'
import { runCase, type UnitCase } from '../../../skills/ci/run-case.ts'
import type { Manifest } from '../../../skills/manifest/manifest.ts'
import { resolveTemplate, type TemplateScope } from '../../../skills/plan/template.ts'
import { recordedCall, situationOf } from './compile-cases.ts'
import { callsOf, type Trace, type TracedAct } from './trace.ts'

/**
 * Later turns that called the skill's tools in its order, and of these the turns that made exactly
 * the calls of the skill. `low`: the lower bound of their share, one-sided, 95 %; 0
 * until each of its branches was taken five times.
 */
export type SkillProof = { turns: number; agreed: number; low: number }

/** Later turns that must have taken a branch: one that is never taken agrees with all of them. */
const LEAST_TAKEN = 5
/** Turns that are run, at most: the first ones. */
const MOST_TURNS = 1000

/**
 * Runs a skill dry on turns that did not teach it: a turn of the same tools in the same order is an
 * attempt, with the inputs that its calls had. A step of another tool, another argument, a call too
 * many or too few makes the whole turn a disagreement, as does a person who overruled it.
 */
export async function proveSkill(manifest: Manifest, later: readonly Trace[], roles: readonly string[]): Promise<SkillProof> {
  let [turns, agreed] = [0, 0]
  const taken = new Map<string, number>()
  for (const trace of later) {
    if (turns >= MOST_TURNS) break
    const tested = attemptIn(manifest, trace)
    if (tested === null) continue
    const result = await runCase(manifest, tested, { roles, fault: null, times: 1 })
    // A skill that is not offered leaves the turn as it is.
    if (result.verdict !== 'allow') continue
    turns += 1
    if (trace.outcome !== 'ok' || unitFailure(tested, result) !== null) continue
    agreed += 1
    for (const tool of new Set(result.effects.map((effect) => effect.tool))) taken.set(tool, (taken.get(tool) ?? 0) + 1)
  }
  const branches = manifest.plan.steps.filter(({ guard }) => guard !== undefined)
  const isShown = branches.every(({ tool }) => (taken.get(tool) ?? 0) >= LEAST_TAKEN)
  return { turns, agreed, low: turns === 0 || !isShown ? 0 : clopperPearsonLow({ n: turns, k: agreed }) }
}

/** The first attempt of a turn, or null. */
function attemptIn(manifest: Manifest, trace: Trace): UnitCase | null {
  if (trace.outcome === 'failed') return null
  const calls = callsOf(trace).map(({ act }) => act)
  for (const at of calls.keys()) {
    const tested = attemptAt(manifest, trace, calls.slice(at))
    if (tested !== null) return tested
  }
  return null
}

/** The attempt with which these calls of a turn begin, with the inputs that they tell. */
export function attemptAt(manifest: Manifest, trace: Trace, calls: readonly TracedAct[]): UnitCase | null {
  const found = segmentAt(manifest, calls)
  const inputs = found === null ? null : inputsOf(manifest, found)
  if (found === null || inputs === null) return null
  return { ...situationOf(trace), inputs, calls: found.flatMap(({ acts }) => acts).map(recordedCall) }
}

type Made = { step: Manifest['plan']['steps'][number]; acts: TracedAct[] }

/** The first calls by the steps whose tools they call; null if a step has none. */
function segmentAt({ plan }: Manifest, calls: readonly TracedAct[]): Made[] | null {
  const made: Made[] = []
  let at = 0
  for (const step of plan.steps) {
    const acts: TracedAct[] = []
    const isNext = (): boolean => calls[at]?.kind === 'tool' && calls[at]?.name === step.tool && calls[at]?.ok === true
    while (isNext() && (step.for_each !== undefined || acts.length === 0)) acts.push(...calls.slice(at, ++at))
    if (acts.length === 0 && step.guard === undefined) return null
    made.push({ step, acts })
  }
  return made
}

/** Inputs by what the calls had where the plan names them; null if one is not told. */
function inputsOf({ signature, plan }: Manifest, made: readonly Made[]): JsonFields | null {
  const inputs: JsonFields = {}
  const outputs: Record<string, Json> = {}
  for (const [index, { step, acts }] of made.entries()) {
    const given = acts.map(({ output }) => (output ?? null) as Json)
    const [first] = acts
    if (first) bind(step.args, first.input, { inputs, work: { steps: outputs }, ctx: {}, env: {}, policy: {} })
    const value = step.for_each ? given : (given[0] ?? null)
    outputs[step.name ?? String(index)] = value
    outputs[String(index)] = value
  }
  const names = new Set(signature.inputs.map(({ name }) => name))
  const isNeeded = (name: string): boolean => JSON.stringify(plan.steps.map(({ args }) => args)).includes(`{{${name}}}`)
  return Array.from(names).every((name) => Object.hasOwn(inputs, name) || !isNeeded(name)) ? inputs : null
}

type Told = TemplateScope & { inputs: JsonFields }

/** Gives the inputs that a template names the values that they had in a call. */
function bind(template: Json, value: Json | undefined, known: Told): void {
  if (typeof template === 'string') return bindText(template, value, known)
  if (Array.isArray(template) && Array.isArray(value)) for (const [index, one] of template.entries()) bind(one, value[index], known)
  else if (isJsonFields(template) && isJsonFields(value)) for (const [name, one] of Object.entries(template)) bind(one, value[name], known)
}

const SLOT = /\{\{([a-z_]\w*)\}\}/gi
const ONLY_SLOT = /^\{\{([a-z_]\w*)\}\}$/i

function bindText(template: string, value: Json | undefined, known: Told): void {
  const only = ONLY_SLOT.exec(template)?.[1]
  if (only !== undefined && value !== undefined) {
    if (!Object.hasOwn(known.inputs, only)) known.inputs[only] = value
    return
  }
  const missing = new Set(Array.from(template.matchAll(SLOT), ([, name = '']) => name).filter((name) => !Object.hasOwn(known.inputs, name)))
  const [name] = missing
  if (name === undefined || missing.size > 1 || typeof value !== 'string') return
  // Around the one input that is missing all is known.
  const parts = template.split(`{{${name}}}`).map((part) => resolveTemplate(part, known))
  const [before, after, ...more] = parts
  if (more.length > 0 || !before?.ok || !after?.ok) return
  const [head, tail] = [textOf(before.value), textOf(after.value)]
  if (value.length > head.length + tail.length && value.startsWith(head) && value.endsWith(tail))
    known.inputs[name] = value.slice(head.length, value.length - tail.length)
}
