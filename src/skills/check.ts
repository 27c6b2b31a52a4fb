import type { FieldError } from '../base/check-json.ts'
import { maximumScore, tauOf } from './bulletin/score.ts'
import { compileExpression } from './cel/expression.ts'
import { badPlace, placesIn, type TemplatePlace } from './plan/template.ts'
import type { Manifest } from './manifest/manifest.ts'
import { ROOTS } from './manifest/names.ts'

type ManifestCheck = { ok: true } | { ok: false; errors: FieldError[] }

export type CheckOptions = {
  /** The tools that there are; null where that is not known. */
  tools: readonly string[] | null
  probes: readonly string[]
  /**
   * Names in `env` that an expression may start with; null if they are unknown until evaluation.
   */
  env_names?: readonly string[] | null
  /** Tools that act, and how. Their steps are external, whatever the manifest says. */
  acting?: ReadonlyMap<string, string>
}

/** Accepts all tools and probes of a manifest: they may be added later. */
export const anything = (manifest: Manifest): CheckOptions => ({
  tools: null,
  probes: expressionsOf(manifest).flatMap(({ source }) => {
    const compiled = compileExpression(source)
    return compiled.ok ? [...compiled.expression.functions] : []
  }),
})

/** Checks that the parts of a manifest fit together. Returns all errors with their paths. */
export function checkManifest(manifest: Manifest, options: CheckOptions): ManifestCheck {
  const errors = [
    ...signatureErrors(manifest),
    ...templateErrors(manifest),
    ...toolErrors(manifest, options.tools),
    ...expressionErrors(manifest, options),
    ...effectErrors(manifest),
    ...actingErrors(manifest, options.acting ?? new Map()),
    ...activationErrors(manifest),
  ]
  return errors.length === 0 ? { ok: true } : { ok: false, errors }
}

type Named = readonly (readonly [key: string | number, name: string])[]
const listed = (names: readonly string[]): Named => names.map((name, index) => [index, name])
const fieldsOf = (record: object): Named => Object.keys(record).map((name) => [name, name])
const errorsAt = (names: Named, path: string, why: (name: string, key: string | number) => string | null): FieldError[] =>
  names.flatMap(([key, name]) => {
    const message = why(name, key)
    return message === null ? [] : [{ path: `${path}.${key}`, message }]
  })

/** Checks that inputs, outputs, bindings, parsers and required slots refer to declared names. */
function signatureErrors({ signature, activation, preconditions, plan, llm_support }: Manifest): FieldError[] {
  const { blackboard_bindings: bindings } = signature
  const inputs = signature.inputs.map(({ name }) => name)
  const outputs = signature.outputs.map(({ name }) => name)
  const secrets = new Set(signature.inputs.flatMap(({ name, secret }) => (secret ? [name] : [])))
  const input = (name: string) => (inputs.includes(name) ? null : `${name} is not an input: add it to signature.inputs`)
  const output = (name: string) => (outputs.includes(name) ? null : `${name} is not an output: add it to signature.outputs`)
  const given = (name: string) => (Object.hasOwn(plan.result_map, name) ? null : `nothing gives ${name}: add it to plan.result_map`)
  const parsed = (name: string) => {
    if (name === 'raw_text') return null
    return secrets.has(name) ? `${name} is secret: a model must neither see nor parse it` : input(name)
  }
  return [
    ...repeated(inputs, 'signature.inputs'),
    ...repeated(outputs, 'signature.outputs'),
    ...errorsAt(listed(activation.required_slots), 'activation.required_slots', input),
    ...errorsAt(listed(preconditions.data_present), 'preconditions.data_present', (name) => (name.includes('.') ? null : input(name))),
    ...errorsAt(fieldsOf(bindings.inputs), 'signature.blackboard_bindings.inputs', input),
    ...errorsAt(fieldsOf(bindings.outputs), 'signature.blackboard_bindings.outputs', output),
    ...errorsAt(fieldsOf(plan.result_map), 'plan.result_map', output),
    ...errorsAt(listed(outputs), 'signature.outputs', given),
    ...llm_support.parsers.flatMap((parser, index) => [
      ...errorsAt(listed(parser.inputs), `llm_support.parsers.${index}.inputs`, parsed),
      ...errorsAt(listed(parser.outputs), `llm_support.parsers.${index}.outputs`, parsed),
    ]),
  ]
}

const repeated = (names: readonly string[], path: string): FieldError[] =>
  errorsAt(listed(names), path, (name, index) => (names.indexOf(name) < Number(index) ? `duplicate name: ${name}` : null))

function templateErrors(manifest: Manifest): FieldError[] {
  const { plan } = manifest
  const count = plan.steps.length
  return [
    ...errorsIn(manifest, { value: plan.idempotence_key, path: 'plan.idempotence_key', steps_before: 0, kept: true }),
    ...plan.steps.flatMap(({ args, for_each }, index) => [
      ...errorsIn(manifest, { value: args, path: `plan.steps.${index}.args`, steps_before: index }),
      ...errorsIn(manifest, { value: for_each?.list, path: `plan.steps.${index}.for_each.list`, steps_before: index }),
    ]),
    ...plan.compensation.flatMap(({ args }, index) =>
      errorsIn(manifest, { value: args, path: `plan.compensation.${index}.args`, steps_before: count }),
    ),
    ...errorsIn(manifest, { value: plan.result_map, path: 'plan.result_map', steps_before: count, kept: true }),
  ]
}

/**
 * `kept`: the result is shown to the model or stored, so it must not contain a secret; nor may any
 * of it be absent, since runs with and without the value would have one key.
 */
type Template = { value: unknown; path: string; steps_before: number; kept?: boolean }

function errorsIn(manifest: Manifest, { value, path, steps_before, kept = false }: Template): FieldError[] {
  return placesIn(value).flatMap((place) => {
    const message = wrongWith(place, manifest, { steps_before, kept })
    return message === null ? [] : [{ path: place.at === '' ? path : `${path}.${place.at}`, message }]
  })
}

function wrongWith(
  { place, path, optional }: TemplatePlace,
  manifest: Manifest,
  { steps_before, kept }: { steps_before: number; kept: boolean },
): string | null {
  if (!path) return badPlace(place)
  if (optional && kept) return `{{${place}}} may have no value: only arguments of tools may be left out`
  const [root, name = '', step] = path
  if (root === 'inputs') {
    const input = manifest.signature.inputs.find((candidate) => candidate.name === name)
    if (!input) return `{{${place}}} is neither an input nor a path on the blackboard (ctx., env., work., policy.)`
    return input.secret && kept ? `{{${place}}} is secret and must not be in it` : null
  }
  if (root !== 'work' || name !== 'steps') return null
  const before = manifest.plan.steps.slice(0, steps_before)
  if (before.some((candidate, index) => candidate.name === step || String(index) === step)) return null
  return `{{${place}}}: there is no earlier step called ${step ?? '(nothing)'}`
}

function toolErrors({ plan, preconditions }: Manifest, tools: readonly string[] | null): FieldError[] {
  if (tools === null) return []
  const named = [
    ...preconditions.tools_available.map((tool, index) => ({ tool, path: `preconditions.tools_available.${index}` })),
    ...plan.steps.map(({ tool }, index) => ({ tool, path: `plan.steps.${index}.tool` })),
    ...plan.compensation.map(({ tool }, index) => ({ tool, path: `plan.compensation.${index}.tool` })),
  ]
  const there = tools.length === 0 ? 'there are none' : `there are ${tools.slice(0, 20).join(', ')}`
  return named.flatMap(({ tool, path }) => (tools.includes(tool) ? [] : [{ path, message: `no tool called ${tool}; ${there}` }]))
}

/** Checks that each CEL expression parses, returns a bool and refers to known names. */
function expressionErrors(manifest: Manifest, { probes, env_names = null }: CheckOptions): FieldError[] {
  const names = new Set<string>([...ROOTS, ...manifest.signature.inputs.map(({ name }) => name), ...(env_names ?? [])])
  const isKnown = (name: string) => env_names === null || names.has(name)
  return expressionsOf(manifest).flatMap(({ path, source }) => {
    const compiled = compileExpression(source)
    if (!compiled.ok) return [{ path, message: compiled.detail }]
    const { paths, functions } = compiled.expression
    const unknown = new Set(paths.map(([root = '']) => root).filter((root) => !isKnown(root)))
    const calls = Array.from(functions).filter((name) => !probes.includes(name))
    return [
      ...Array.from(unknown, (name) => ({ path, message: `${name} is neither an input nor one of ${ROOTS.join(', ')}` })),
      ...calls.map((name) => ({ path, message: `there is no probe called ${name}; there are ${probes.join(', ') || 'none'}` })),
    ]
  })
}

export function expressionsOf({ preconditions, policy, plan }: Manifest): { path: string; source: string }[] {
  const listed = (sources: readonly string[], path: string) => sources.map((source, index) => ({ path: `${path}.${index}`, source }))
  return [
    ...listed(preconditions.invariants, 'preconditions.invariants'),
    ...plan.steps.flatMap(({ guard }, index) => (guard === undefined ? [] : [{ path: `plan.steps.${index}.guard`, source: guard }])),
    ...listed(policy.deny_if, 'policy.deny_if'),
    ...listed(policy.needs_approval_if, 'policy.needs_approval_if'),
  ]
}

/** Checks that external effects can be repeated and undone, and that outputs are declared. */
function effectErrors({ plan, effects, signature }: Manifest): FieldError[] {
  const errors: FieldError[] = []
  if (effects.external.length > 0 && plan.idempotence_key === undefined) {
    errors.push({ path: 'plan.idempotence_key', message: 'is required where effects.external is not empty: a run may be repeated' })
  }
  if (effects.external.length > 0 && plan.compensation.length === 0) {
    errors.push({ path: 'plan.compensation', message: 'is required where effects.external is not empty: a run may fail halfway' })
  }
  for (const [name, path] of Object.entries(signature.blackboard_bindings.outputs)) {
    const at = `signature.blackboard_bindings.outputs.${name}`
    if (path.startsWith('policy.')) errors.push({ path: at, message: 'policy is not for skills to write' })
    if (path === 'work.steps' || path.startsWith('work.steps.')) errors.push({ path: at, message: 'work.steps holds what the steps gave' })
    if (!effects.writes.includes(path)) errors.push({ path: at, message: `${path} is not in effects.writes` })
  }
  return [...errors, ...stepErrors(plan), ...loopErrors(plan)]
}

/** A step that acts needs a key or a compensation: a run may be repeated, or fail halfway. */
export function actingErrors({ plan, effects }: Manifest, acting: ReadonlyMap<string, string>): FieldError[] {
  if (effects.external.length > 0 || plan.idempotence_key !== undefined || plan.compensation.length > 0) return []
  return plan.steps.flatMap(({ tool }, index) =>
    acting.has(tool)
      ? [
          {
            path: `plan.steps.${index}.tool`,
            message: `${tool} acts (${acting.get(tool)}): give plan.idempotence_key or plan.compensation`,
          },
        ]
      : [],
  )
}

/** Calls that one run may make. */
const MOST_CALLS = 256

function loopErrors({ steps }: Manifest['plan']): FieldError[] {
  const calls = steps.reduce((sum, { for_each }) => sum + (for_each?.at_most ?? 1), 0)
  const isOne = (list: string): boolean => placesIn(list).length === 1 && /^\{\{[^{}?]+\}\}$/.test(list)
  return [
    ...steps.flatMap(({ for_each }, index) =>
      for_each === undefined || isOne(for_each.list)
        ? []
        : [{ path: `plan.steps.${index}.for_each.list`, message: 'is one placeholder, such as {{work.steps.find.orders}}' }],
    ),
    ...(calls > MOST_CALLS
      ? [{ path: 'plan.steps', message: `they may make ${calls} calls in a run; at most ${MOST_CALLS} are allowed` }]
      : []),
  ]
}

function stepErrors({ steps, compensation }: Manifest['plan']): FieldError[] {
  const names = steps.map(({ name }) => name)
  const twice = names.flatMap((name, index) =>
    name !== undefined && names.indexOf(name) < index ? [{ path: `plan.steps.${index}.name`, message: `duplicate name: ${name}` }] : [],
  )
  const unknown = compensation.flatMap(({ step }, index) => {
    const isThere = step === undefined || (typeof step === 'number' ? step < steps.length : names.includes(step))
    return isThere
      ? []
      : [{ path: `plan.compensation.${index}.step`, message: `there is no step called ${step}: name one or give its index` }]
  })
  return [...twice, ...unknown]
}

function activationErrors(manifest: Manifest): FieldError[] {
  const maximum = maximumScore(manifest)
  if (maximum === 0) {
    return [
      { path: 'activation.score_weights', message: 'no cue can score: give goal labels, keywords or entity types, and a weight to them' },
    ]
  }
  const tau = tauOf(manifest)
  return tau > maximum ? [{ path: 'activation.tau', message: `is ${tau}, but all cues together score ${maximum} at most` }] : []
}
