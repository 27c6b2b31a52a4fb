import { hexHash } from '../../../base/hash.ts'
import { canonicalJson, isJsonFields, type Json, type JsonFields } from '../../../base/json.ts'
import { placesIn, textOf } from '../../../base/template.ts'
import { checkManifest } from '../../../skills/check.ts'
import { parseManifest, type Manifest } from '../../../skills/manifest/manifest.ts'
import { slotName, tokensOf } from '../../../skills/manifest/names.ts'
import { isSecretName, sensitiveIn } from '../../../skills/gate/mask.ts'
import { mutationNames } from '../../../skills/ci/mutations.ts'
import type { UnitCase } from '../../../skills/ci/run-case.ts'
import { guardOf, madeCalls } from './branches.ts'
import { casesOf } from './compile-cases.ts'
import { Generaliser, NotGeneral, typeOf, type PatternSlot } from './generalise.ts'
import { MINING, type Pattern } from './mine.ts'
import { fieldsOf } from '../../../evidence/attribution.ts'
import { blackboardSources, sharedFields, type ValueSource, isConstant, keyOf } from './sources.ts'
import type { ToolFacts, Tools } from '../../../tools/tool-facts.ts'
import { eachCall, meanOf, p95Of, sumOf, type Trace, type TracedAct, type Occurrence } from './trace.ts'

const MOST_INVARIANTS = 16
const MOST_COMPARED = 50
/** Names that an expression can hold without quotes. */
const PLAIN_PATH = /^(?:ctx|env|policy)(?:\.[A-Za-z_]\w*)+$/
const LONGEST_TEXT = 200

/**
 * Expressions that held on the blackboard in all occurrences: a field had one value, which it does
 * not have in some other turn, or two fields that vary were equal.
 */
function invariantsOf(occurrences: readonly Occurrence[], others: readonly Trace[]): string[] {
  const sources = blackboardSources(occurrences).filter(({ place }) => PLAIN_PATH.test(place))
  const elsewhere = others.map(({ blackboard }) => fieldsOf(blackboard))
  const constant = sources.filter(({ values }) => isConstant(values))
  const varying = sources.filter(({ values }) => !isConstant(values)).slice(0, MOST_COMPARED)
  const isTelling = ({ place, values: [value = null] }: ValueSource): boolean =>
    isShort(value) && elsewhere.some((fields) => fields.has(place) && fields.get(place) !== value)
  return [
    ...constant.filter(isTelling).map(({ place, values: [value = null] }) => `${place} == ${JSON.stringify(value)}`),
    ...varying.flatMap((one, index) =>
      varying
        .slice(index + 1)
        .filter((other) => keyOf(one.values) === keyOf(other.values))
        .map((other) => `${one.place} == ${other.place}`),
    ),
  ].slice(0, MOST_INVARIANTS)
}

/** Numbers have several types in expressions, so that they are not compared with literals. */
const isShort = (value: Json): boolean => typeof value === 'boolean' || (typeof value === 'string' && value.length <= LONGEST_TEXT)

const MOST_KEYWORDS = 8
/** A cue multiplies the odds of the pattern by this much, and is in this share of its turns. */
const LEAST_ODDS = 3
const LEAST_SHARE = 0.3
const SHORTEST_WORD = 3

/** Words and goal labels by which turns with the pattern differ from those without. */
function activationOf(occurrences: readonly Occurrence[], others: readonly Trace[], slots: readonly PatternSlot[]) {
  const turns = occurrences.map(({ trace }) => trace)
  const isWord = (word: string): boolean => word.length >= SHORTEST_WORD && !/^\d+$/.test(word)
  const wordsOf = ({ goal }: Trace): string[] => tokensOf(goal?.text ?? '').filter(isWord)
  // A value of one turn says nothing about what a word means in another.
  const cuesIn = (turn: Trace, index: number): string[] => {
    const ofValues = new Set(slots.flatMap(({ values }) => tokensOf(textOf(values[index] ?? null))))
    return wordsOf(turn).filter((word) => !ofValues.has(word))
  }
  const cues = turns.map(cuesIn)
  const keywords_any = covering(cues, telling(cues, others.map(wordsOf)))
  const labelsOf = ({ goal }: Trace): string[] => goal?.labels ?? []
  const goal_labels = telling(turns.map(labelsOf), others.map(labelsOf)).slice(0, MOST_KEYWORDS)
  const score_weights = { goal_label: goal_labels.length > 0 ? 3 : 0, keyword_hit: keywords_any.length > 0 ? 1 : 0 }
  return { keywords_any, goal_labels, score_weights }
}

/**
 * The most telling words, and where turns have none of them, the words that most of these have: a
 * skill that half of the turns need has no word of its own, and is offered in all of them.
 */
function covering(turns: readonly (readonly string[])[], told: readonly string[]): string[] {
  const chosen = told.slice(0, MOST_KEYWORDS)
  const isCovered = (words: readonly string[]): boolean => chosen.some((word) => words.includes(word))
  for (;;) {
    const rest = turns.filter((words) => !isCovered(words))
    const [most] = Array.from(countsOf(rest)).sort(([one, n], [other, m]) => m - n || (one < other ? -1 : 1))
    if (chosen.length === 0 || most === undefined) return chosen
    if (chosen.length < MOST_KEYWORDS) chosen.push(most[0])
    else chosen.splice(chosen.length - 1, 1, most[0])
    if (chosen.length === MOST_KEYWORDS) return chosen
  }
}

/** By log-odds with half a turn added to each count, highest first. */
function telling(withPattern: readonly (readonly string[])[], without: readonly (readonly string[])[]): string[] {
  const inside = countsOf(withPattern)
  const outside = countsOf(without)
  const oddsOf = (count: number, turns: number): number => (count + 0.5) / (turns - count + 0.5)
  return Array.from(inside, ([word, count]) => ({
    word,
    share: count / withPattern.length,
    odds: oddsOf(count, withPattern.length) / oddsOf(outside.get(word) ?? 0, without.length),
  }))
    .filter(({ share, odds }) => share >= LEAST_SHARE && odds >= LEAST_ODDS)
    .sort((one, other) => other.odds - one.odds || (one.word < other.word ? -1 : 1))
    .map(({ word }) => word)
}

/** In how many of the turns each word is. */
function countsOf(turns: readonly (readonly string[])[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const words of turns) for (const word of new Set(words)) counts.set(word, (counts.get(word) ?? 0) + 1)
  return counts
}

export type CompileOptions = {
  /** The same pattern gets another id in each scope. */
  scope?: string
  tools: Tools
  /** Turns without the pattern, for cues and invariants. */
  others: readonly Trace[]
  owner: string
  roles: readonly string[]
  /** The model that extracts inputs from what was said; null: the caller gives all inputs. */
  parser_model: string | null
  /** The latest version of the skill with this pattern, by `skillIdOf`. */
  previous: Manifest | null
}
/** `cases` test the manifest against the turns that it was learned from. */
export type CompiledSkill = { ok: true; manifest: Manifest; changed: boolean; cases: UnitCase[] } | { ok: false; reason: string }

/** Occurrences that are generalised over: the latest ones. */
const MOST_OCCURRENCES = 200
const MOST_OUTPUTS = 8

/** The same pattern in the same place always has the same id. */
export function skillIdOf({ symbols, place }: Pick<Pattern, 'symbols' | 'place'>, scope?: string): string {
  const parts = scope === undefined ? [symbols, place] : [symbols, place, scope]
  const hash = hexHash(JSON.stringify(parts)).slice(0, 8)
  const last = /^[\w.:/-]*/.exec(symbols.at(-1) ?? '')?.[0] ?? ''
  return `learned.${last.replaceAll(/\W+/g, '_').slice(0, 48)}_${hash}`
}

/** A pattern as a manifest, or the reason why none can be made of it. */
export function compilePattern(pattern: Pattern, options: CompileOptions): CompiledSkill {
  try {
    const draft = draftOf(pattern, options)
    return draft.ok ? versioned(draft, options) : draft
  } catch (error) {
    if (error instanceof NotGeneral) return { ok: false, reason: error.message }
    throw error
  }
}

/** Checked as any other manifest, then compared with the version before. */
function versioned({ manifest: draft, cases }: Extract<Draft, { ok: true }>, { previous, tools }: CompileOptions): CompiledSkill {
  const parsed = parseManifest({ ...draft, version: nextVersion(draft, previous) })
  const checked = parsed.ok ? checkManifest(parsed.manifest, { tools: [...tools.keys()], probes: [] }) : parsed
  if (!parsed.ok || !checked.ok) {
    const [error] = checked.ok ? [] : checked.errors
    return { ok: false, reason: `the manifest has errors: ${error?.path} ${error?.message}` }
  }
  const { manifest } = parsed
  const isSame = previous !== null && canonicalJson(essence(manifest)) === canonicalJson(essence(previous))
  return isSame ? { ok: true, manifest: previous, changed: false, cases } : { ok: true, manifest, changed: true, cases }
}

/** Without what names the turns that it was learned from. */
const essence = ({ version: _version, provenance: _provenance, tests: { unit_cases: _cases, ...tests }, ...rest }: Manifest): object => ({
  ...rest,
  tests,
})

/** A minor version for other inputs or outputs, else a patch. */
function nextVersion({ signature }: JsonFields, previous: Manifest | null): string {
  if (!previous) return '1.0.0'
  const [major = 1, minor = 0, patch = 0] = previous.version.split(/[.+-]/).map(Number)
  const before = { inputs: previous.signature.inputs, outputs: previous.signature.outputs }
  const { inputs, outputs } = signature as JsonFields
  return canonicalJson(before) === canonicalJson({ inputs, outputs }) ? `${major}.${minor}.${patch + 1}` : `${major}.${minor + 1}.0`
}

type Draft = { ok: true; manifest: JsonFields; cases: UnitCase[] } | { ok: false; reason: string }
type SkillStep = {
  name: string
  tool: string
  args: JsonFields
  timeout_ms: number
  guard?: string
  for_each?: { list: string; at_most: number }
}

function draftOf(pattern: Pattern, options: CompileOptions): Draft {
  const { tools, others, owner, roles, parser_model, scope } = options
  const occurrences = pattern.occurrences.slice(-MOST_OCCURRENCES)
  const generaliser = new Generaliser({
    blackboard: blackboardSources(occurrences),
    texts: occurrences.map(({ trace }) => trace.goal?.text ?? ''),
  })
  const steps = stepsOf(pattern, { occurrences, generaliser })
  const { slots } = generaliser
  const external = steps.filter(({ tool }) => tools.get(tool)?.repeatable !== true)
  const undone = external.map((step) => compensationOf(step, tools.get(step.tool)))
  const lost = external.find((_, index) => undone[index] === null)
  if (lost) return { ok: false, reason: `${lost.tool} has an effect outside, and no tool that undoes it is known` }
  const compensation = undone.filter((entry) => entry !== null)
  const key = callKeyOf(external, slots)
  if (external.length > 0 && key === null)
    return { ok: false, reason: 'no input tells one run from the next, so that it has no idempotency key' }
  const cues = activationOf(occurrences, others, slots)
  if (cues.keywords_any.length + cues.goal_labels.length === 0)
    return { ok: false, reason: 'nothing that was said tells when it is useful' }
  const said = slots.filter(({ in_text }) => in_text && parser_model !== null)
  const dear = costRefusal(pattern, said.length)
  if (dear !== null) return { ok: false, reason: dear }
  const cases = casesOf(occurrences, slots)
  const outputs = outputsOf(occurrences, steps)
  const manifest: JsonFields = {
    id: skillIdOf(pattern, scope),
    owner,
    description: `Learned from turns that did the same: ${steps.map(({ tool }) => tool).join(', ')}.`.slice(0, 500),
    compat: { ...pattern.place, ...(pattern.envs.length > 0 && { env: pattern.envs }) },
    signature: signatureOf(slots, outputs),
    preconditions: {
      tools_available: Array.from(new Set([...steps, ...compensation].map(({ tool }) => tool))),
      data_present: slots.map(({ name }) => name),
      invariants: invariantsOf(occurrences, others),
    },
    plan: {
      ...(key !== null && { idempotence_key: key }),
      budget: budgetOf(occurrences),
      steps,
      compensation,
      result_map: Object.fromEntries(outputs.map(({ name, place }) => [name, `{{${place}}}`])),
    },
    effects: { external: Array.from(new Set(external.map(({ tool }) => `called:${tool}`.slice(0, 64)))) },
    activation: { ...cues, required_slots: slots.map(({ name }) => name) },
    llm_support: { parsers: parser_model === null ? [] : said.map(({ name }) => parserOf(name, parser_model)) },
    policy: { allow_roles: [...roles] },
    tests: {
      unit_cases: cases.map(({ name }) => name),
      fuzz: { count: 52, mutations: mutationNames },
      expected: { pass_rate_unit: 0.95, pass_rate_fuzz: 0.85 },
    },
    provenance: provenanceOf(pattern),
  }
  return { ok: true, manifest, cases }
}

const parserOf = (name: string, model: string): JsonFields => ({ name: `parse_${name}`, model, temperature: 0, outputs: [name] })

function stepsOf(
  { symbols, branches }: Pick<Pattern, 'symbols' | 'branches'>,
  { occurrences, generaliser }: { occurrences: readonly Occurrence[]; generaliser: Generaliser },
): SkillStep[] {
  const outputs: ValueSource[] = []
  const steps: SkillStep[] = []
  for (const index of symbols.keys()) {
    const made = occurrences.map(({ calls }) => calls[index] ?? null)
    const calls = made.filter((call) => call !== null)
    const [first] = calls
    if (!first) throw new NotGeneral('no turn made one of the calls')
    const branch = branches[index] ?? null
    const of = branch === null ? { generaliser, outputs } : generaliser.within(made, outputs)
    const args = of.generaliser.template(
      'args',
      calls.map(({ input }) => input),
      of.outputs,
    )
    if (!isJsonFields(args)) throw new NotGeneral(`the arguments of ${first.name} differ in their fields`)
    const name = stepName(first.name, steps)
    const timeout_ms = milliseconds(p95Of(calls.flatMap(eachCall).map(({ duration_ms }) => duration_ms)), 600_000)
    const guard = branch === null ? {} : { guard: guardOf(branch, steps[branch.step]?.name ?? '') }
    steps.push({ name, tool: first.name, timeout_ms, ...guard, ...loopOf(calls, { args, symbols: symbols.slice(0, index), steps }) })
    if (branch !== null || first.loop) continue
    const given = sharedFields(
      calls.map(({ output }) => output),
      `work.steps.${name}`,
    )
    outputs.push(...given.filter(({ place }) => place !== `work.steps.${name}`))
  }
  return steps
}

/** A list may grow to twice what it was. */
const GROWS = 2
const [LEAST_ITEMS, MOST_ITEMS] = [8, 64]

/** The list that a loop runs over, and its arguments with the item. */
function loopOf(
  calls: readonly TracedAct[],
  { args, symbols, steps }: { args: JsonFields; symbols: readonly string[]; steps: readonly SkillStep[] },
): Pick<SkillStep, 'for_each' | 'args'> {
  const [{ loop, name } = { loop: undefined, name: '' }] = calls
  if (!loop) return { args }
  const source = steps[symbols.lastIndexOf(loop.source)]
  if (!source) throw new NotGeneral(`the list of ${name} comes from a call before the sequence`)
  const longest = Math.max(...calls.map((call) => eachCall(call).length))
  return {
    args: { ...args, [loop.argument]: loop.field === null ? '{{work.item}}' : `{{work.item.${loop.field}}}` },
    for_each: {
      list: `{{work.steps.${source.name}.${loop.path}}}`,
      at_most: Math.min(MOST_ITEMS, Math.max(LEAST_ITEMS, GROWS * longest)),
    },
  }
}

function stepName(tool: string, steps: readonly SkillStep[]): string {
  const plain = (tool.split(/[./:]/).at(-1) ?? tool).replaceAll(/\W+/g, '_').slice(0, 56)
  const base = slotName.safeParse(plain).success ? plain : `step_${plain}`
  const same = steps.filter(({ name }) => name === base || name.startsWith(`${base}_`)).length
  return same === 0 ? base : `${base}_${same + 1}`
}

/** Twice the 95th percentile, and a second at least. */
const milliseconds = (p95: number, most: number): number => Math.min(most, Math.max(1000, Math.ceil(2 * p95)))

function budgetOf(occurrences: readonly Occurrence[]): JsonFields {
  const sums = occurrences.map(madeCalls).map((calls) => ({
    cost: sumOf(calls.map(({ cost_usd }) => cost_usd)),
    latency: sumOf(calls.map(({ duration_ms }) => duration_ms)),
  }))
  const cost = 2 * p95Of(sums.map((sum) => sum.cost))
  return { max_cost_usd: Number(cost.toFixed(6)), max_latency_ms: milliseconds(p95Of(sums.map(({ latency }) => latency)), 3_600_000) }
}

/** Undoes a step by the tool's inverse; null if it has none or lacks what that one matches. */
function compensationOf({ name, args, timeout_ms }: SkillStep, facts: ToolFacts | undefined) {
  const inverse = facts?.inverse
  if (!inverse?.match.every((field) => Object.hasOwn(args, field))) return null
  const fields = Object.fromEntries(inverse.match.map((field): [string, Json] => [field, args[field] ?? null]))
  return { when: 'partial_failure', step: name, tool: inverse.tool, args: fields, timeout_ms }
}

/** The inputs that the external steps depend on, also by way of earlier steps. */
function callKeyOf(external: readonly SkillStep[], slots: readonly PatternSlot[]): string | null {
  const named = new Set(external.flatMap(({ args }) => placesIn(args).map(({ place }) => place.split('.', 1)[0] ?? '')))
  const isIndirect = named.has('work')
  const own = slots.filter(({ name, secret }) => !secret && (isIndirect || named.has(name)))
  return own.length === 0 ? null : own.map(({ name }) => `{{${name}}}`).join(':')
}

function signatureOf(slots: readonly PatternSlot[], outputs: readonly Output[]): JsonFields {
  const bound = slots.flatMap(({ name, path }) => (path === null ? [] : [[name, path] as const]))
  return {
    inputs: slots.map(({ name, type, secret }) => ({ name, type, required: true, ...(secret && { secret }) })),
    outputs: outputs.map(({ name, type }) => ({ name, type })),
    blackboard_bindings: { inputs: Object.fromEntries(bound) },
  }
}

type Output = { name: string; type: string; place: string }

/** The fields that the last step always gave, of those that all turns made. */
function outputsOf(occurrences: readonly Occurrence[], steps: readonly SkillStep[]): Output[] {
  const last = steps.findLastIndex(({ guard }) => guard === undefined)
  if (steps[last]?.for_each !== undefined) return []
  const given = sharedFields(
    occurrences.map(({ calls }) => calls[last]?.output),
    `work.steps.${steps[last]?.name ?? ''}`,
    1,
  )
  return given
    .flatMap(({ place, values }): Output[] => {
      const name = place.split('.').at(-1) ?? ''
      const type = typeOf(values)
      const isShown = !values.some((value) => isSecretName(name, value) || sensitiveIn(value, { emails: false }) !== null)
      return place.includes('.', 'work.steps.'.length) && type !== null && isShown && slotName.safeParse(name).success
        ? [{ name, type, place }]
        : []
    })
    .slice(0, MOST_OUTPUTS)
}

/** Each parser is one more model call. */
function costRefusal({ occurrences, baseline_usd, delta_cost }: Pattern, parsers: number): string | null {
  const turns = occurrences.map(({ trace }) => trace)
  const per_call = meanOf(turns.map(({ usage }) => (usage.model_calls === 0 ? 0 : usage.cost_usd / usage.model_calls)))
  const share = baseline_usd === 0 ? 0 : 1 + delta_cost + (parsers * per_call) / baseline_usd
  return share > MINING.cost ? `with ${parsers} parsers it costs ${Math.round(share * 100)} % of what the turns cost` : null
}

const provenanceOf = ({ occurrences, after, support, success, delta_cost, delta_p95 }: Pattern): JsonFields => ({
  mined_from_traces: occurrences.slice(-MOST_OCCURRENCES).map(({ trace }) => trace.trace_id),
  support,
  success,
  delta_cost,
  delta_p95,
  ...(Object.keys(after).length > 0 && { after }),
})
