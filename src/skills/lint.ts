import type { ASTNode } from '@marcbachmann/cel-js'
import { isJsonFields, type Json } from '../base/json.ts'
import { roleName } from '../contract/principal.ts'
import { nodesIn, pathOf } from '../expressions/names.ts'
import { fieldsIn, isFreeText } from '../tools/origins/values.ts'
import { namesDestination } from '../tools/origins/destinations.ts'
import { compileExpression, evaluate, type ExpressionScope, withPath } from './cel/expression.ts'
import { expressionsOf } from './check.ts'
import type { Manifest } from './manifest/manifest.ts'
import { ROOTS } from './manifest/names.ts'
import { placesIn } from './plan/template.ts'

/** A doubt about a valid manifest: what its author hardly meant. */
export type Finding = { path: string; message: string; example: string }

/** The findings about a manifest, beside other manifests that fit the same scopes. */
export function lintManifest(manifest: Manifest, others: readonly Manifest[] = []): Finding[] {
  return [
    ...conditionFindings(manifest),
    ...roleFindings(manifest),
    ...destinationFindings(manifest),
    ...latencyFindings(manifest),
    ...costFindings(manifest),
    ...shadowFindings(manifest, others),
  ]
}

type Constant = 'always' | 'never'
type Said = Readonly<Partial<Record<Constant, string>>>
/** The meanings of constant conditions. `needs_approval_if: ["true"]` is usual. */
const MEANINGS: readonly (readonly [RegExp, Said])[] = [
  [
    /^preconditions\.invariants/,
    { always: 'always holds, so that it checks nothing', never: 'can never hold, so that the skill never runs' },
  ],
  [/^plan\.steps\.\d+\.guard/, { always: 'always holds, so that it guards nothing', never: 'can never hold, so that the step never runs' }],
  [/^policy\.deny_if/, { always: 'always holds, so that the skill never runs', never: 'can never hold, so that it denies nothing' }],
  [/^policy\.needs_approval_if/, { never: 'can never hold, so that nobody is asked' }],
]

function conditionFindings(manifest: Manifest): Finding[] {
  return expressionsOf(manifest).flatMap(({ path, source }) => {
    const constant = constantOf(source, manifest)
    const said = constant && MEANINGS.find(([place]) => place.test(path))?.[1][constant]
    if (!said) return []
    return [{ path, message: `${source} ${said}`, example: 'compare an input with a value that it may have: inputs.amount > 100' }]
  })
}

/** The most combinations of values that are tried. */
const MOST_TRIED = 4096
const LOGIC = new Set(['&&', '||', '!_', '==', '!=', '<', '<=', '>', '>=', 'in', 'list', 'value', 'id', '.', '[]', '?:'])
const ORDER = new Set(['<', '<=', '>', '>='])

/**
 * The result of a condition that is the same whatever its values are; null if it depends on them.
 * Only comparisons with constants are judged: a value on each side of each constant stands for all.
 */
export function constantOf(source: string, { signature }: Pick<Manifest, 'signature'>): Constant | null {
  const compiled = compileExpression(source)
  if (!compiled.ok || compiled.expression.functions.size > 0) return null
  const nodes = nodesIn(compiled.expression.run.ast)
  if (!nodes.every(isSimple)) return null
  const constants = nodes.flatMap((node): Json[] => (node.op === 'value' ? [plain(node.args)] : []))
  const paths = [...new Map(compiled.expression.paths.map((path) => [path.join('.'), path])).values()]
  const types = new Map<string, string>(signature.inputs.map(({ name, type }) => [name, type]))
  const values = paths.map((path) => candidates(constants, types.get(path.at(-1) ?? '')))
  if (values.reduce((all, { length }) => all * length, 1) > MOST_TRIED) return null
  const seen = new Set<boolean>()
  for (const one of combinations(values)) {
    const result = evaluate(source, scopeOf(paths, one))
    if (result.ok) seen.add(result.value)
    if (seen.size > 1) return null
  }
  const [only] = seen
  return only === undefined ? null : only ? 'always' : 'never'
}

/** True for logic, and for comparisons of a path with constants. Texts are not put in an order. */
function isSimple(node: ASTNode): boolean {
  if (pathOf(node) || node.op === 'value' || node.op === 'list') return true
  if (!LOGIC.has(node.op)) return false
  if (!(ORDER.has(node.op) || node.op === '==' || node.op === '!=' || node.op === 'in')) return true
  const sides = node.args as ASTNode[]
  if (sides.filter((side) => pathOf(side)).length > 1) return false
  if (!sides.every((side) => pathOf(side) || side.op === 'value' || side.op === 'list')) return false
  return !ORDER.has(node.op) || sides.every((side) => side.op !== 'value' || typeof side.args !== 'string')
}

const plain = (value: unknown): Json => (typeof value === 'bigint' ? Number(value) : (value as Json))

function candidates(constants: readonly Json[], type: string | undefined): Json[] {
  const numbers = constants.filter((value) => typeof value === 'number')
  const texts = constants.filter((value) => typeof value === 'string')
  const step = type === 'integer' ? 1 : 0.5
  const near = [...new Set(numbers.flatMap((value) => [value - step, value, value + step]))]
  const isNumber = type === 'number' || type === 'integer'
  const isText = type === 'string' || type === 'url'
  return [
    ...(isText || type === 'boolean' ? [] : near.length > 0 || isNumber ? [...near, 0] : []),
    ...(isNumber || type === 'boolean' ? [] : [...texts, 'another value']),
    ...(isNumber || isText ? [] : [true, false]),
  ]
}

function* combinations(values: readonly (readonly Json[])[]): Generator<Json[]> {
  const [first, ...rest] = values
  if (!first) yield []
  for (const value of first ?? []) for (const more of combinations(rest)) yield [value, ...more]
}

function scopeOf(paths: readonly (readonly string[])[], values: readonly Json[]): ExpressionScope {
  const set = (scope: unknown, path: readonly string[], index: number): unknown =>
    withPath(scope, (ROOTS as readonly string[]).includes(path[0] ?? '') ? path : ['inputs', ...path], values[index])
  return paths.reduce<unknown>((scope, path, index) => set(scope, path, index), {}) as ExpressionScope
}

function roleFindings({ policy: { allow_roles = [] } }: Manifest): Finding[] {
  const example = 'allow_roles: ["publisher", "agent"]'
  if (allow_roles.length === 0) return [{ path: 'policy.allow_roles', message: 'names no role, so that nobody may run it', example }]
  return allow_roles.flatMap((role, index) =>
    roleName.safeParse(role).success
      ? []
      : [{ path: `policy.allow_roles.${index}`, message: `${role} can be the role of no key and no agent`, example }],
  )
}

/** Steps that act where a free text says. */
function destinationFindings({ plan, signature }: Manifest): Finding[] {
  const texts = new Set(
    signature.inputs.flatMap(({ name, type, destination }) => (type === 'string' && destination === undefined ? [name] : [])),
  )
  const isFree = (path: readonly string[] | null): boolean =>
    path !== null && (path[0] === 'inputs' ? texts.has(path[1] ?? '') && !namesDestination(path[1] ?? '') : isFreeText(path.at(-1) ?? ''))
  return plan.steps.flatMap(({ args }, index) =>
    Array.from(fieldsIn(args)).flatMap(({ path, value }): Finding[] => {
      const free = path.split('.').some(namesDestination) ? placesIn(value).find((place) => isFree(place.path)) : undefined
      if (!free) return []
      const message = `says where the step acts, and {{${free.place}}} is free text`
      const example = `declare the input with "destination": true, or take a field such as {{work.steps.find.email}}`
      return [{ path: `plan.steps.${index}.args.${path}`, message, example }]
    }),
  )
}

function latencyFindings({ plan: { budget, steps } }: Manifest): Finding[] {
  const [longest] = steps.map(({ timeout_ms }) => timeout_ms).toSorted((left, right) => right - left)
  const waits = steps.reduce((sum, { retry }) => sum + (retry ? retry.backoff_ms * (2 ** (retry.max_attempts - 1) - 1) : 0), 0)
  const path = 'plan.budget.max_latency_ms'
  const example = `"max_latency_ms": ${steps.reduce((sum, { timeout_ms }) => sum + timeout_ms, waits)}`
  if (longest !== undefined && budget.max_latency_ms < longest)
    return [{ path, message: `${budget.max_latency_ms} ms is below the ${longest} ms that one step may take`, example }]
  if (budget.max_latency_ms < waits)
    return [{ path, message: `${budget.max_latency_ms} ms is below the ${waits} ms that retries wait`, example }]
  return []
}

/** A tool says what a call cost once it was made, and a case of the manifest has recorded it. */
function costFindings({ plan: { budget }, tests }: Manifest): Finding[] {
  const cases = tests.unit_cases.map((one, index) => ({ index, usd: runsIn(one) ? costOf(one['calls']) : 0 }))
  const [dearest] = cases.toSorted((left, right) => right.usd - left.usd)
  if (!dearest || dearest.usd <= budget.max_cost_usd) return []
  const path = 'plan.budget.max_cost_usd'
  const message = `${budget.max_cost_usd} USD is below the ${dearest.usd} USD that the calls of tests.unit_cases.${dearest.index} cost`
  return [{ path, message, example: `"max_cost_usd": ${dearest.usd}` }]
}

/** True for a case whose calls are made: the gate lets it pass. */
const runsIn = (one: unknown): one is Record<string, unknown> =>
  isJsonFields(one) && [undefined, 'allow', 'needs_approval'].some((verdict) => verdict === one['verdict'])

/** The cost of recorded calls in USD, without the error of sums of fractions. */
function costOf(calls: unknown): number {
  const costs = (Array.isArray(calls) ? calls : []).map((call: unknown) => (isJsonFields(call) ? Number(call['cost_usd'] ?? 0) : 0))
  const sum = costs.reduce((left, right) => left + right, 0)
  return Number.isFinite(sum) ? Number(sum.toFixed(9)) : 0
}

const CUES = [
  ['goal_labels', 'goal_label'],
  ['keywords_any', 'keyword_hit'],
  ['entity_types', 'entity_type'],
] as const

/** Another skill that has each of its cues, at no smaller weight, always comes before it. */
function shadowFindings(manifest: Manifest, others: readonly Manifest[]): Finding[] {
  const isShadow = ({ id, activation }: Manifest): boolean =>
    id !== manifest.id &&
    CUES.every(([cues, weight]) => {
      const own = manifest.activation[cues]
      const weighs = activation.score_weights[weight] >= manifest.activation.score_weights[weight]
      return own.length === 0 || (weighs && own.every((cue) => activation[cues].includes(cue)))
    }) &&
    activation.score_weights.recent_success >= manifest.activation.score_weights.recent_success
  const shadow = others.find(isShadow)
  if (!shadow) return []
  const message = `${shadow.id} has each of these cues at no smaller weight: it is always ranked at least as high`
  return [{ path: 'activation', message, example: 'give the skill a keyword of its own: keywords_any: ["refund"]' }]
}
