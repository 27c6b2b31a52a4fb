import { sameJson } from '../../../base/json.ts'
import { unitHash } from '../../../proof/draw.ts'
import { hashManifest, type Manifest } from '../../../skills/manifest/manifest.ts'
import { MUTATIONS, mutationNames, type Mutated, type Pick } from './mutations.ts'
import { runCase, type CaseResult, type Effect, type UnitCase } from './run-case.ts'

export type CiFailure = { kind: 'unit' | 'fuzz'; name: string; reason: string }
/** Of one version, by its hash. The same manifest, cases and seed give the same report. */
export type CiReport = {
  skill_id: string
  version: string
  hash: string
  seed: string
  unit: { n: number; passed: number; required: number }
  fuzz: { n: number; passed: number; required: number }
  passed: boolean
  failures: CiFailure[]
}

const DEFAULTS = { unit: 0.95, fuzz: 0.85, count: 50 } as const
const MOST_FAILURES = 20

/** `repeatable`: the tools that only read. */
export type CiOptions = { cases: readonly UnitCase[]; repeatable: ReadonlySet<string>; roles: readonly string[]; seed: string }

/** Runs a skill's cases and seeded mutations of them. Nothing outside is called. */
export async function testSkill(manifest: Manifest, { cases, repeatable, roles, seed }: CiOptions): Promise<CiReport> {
  const failures: CiFailure[] = []
  let unit_passed = 0
  for (const tested of cases) {
    const reason = unitFailure(tested, await runCase(manifest, tested, { roles, fault: null, times: 1 }))
    if (reason === null) unit_passed += 1
    else failures.push({ kind: 'unit', name: tested.name, reason })
  }
  const fuzz = fuzzCases(manifest, { cases, roles, seed })
  let fuzz_passed = 0
  for (const { name, mutated } of fuzz) {
    const reason = fuzzFailure(manifest, mutated, { result: await runCase(manifest, mutated.tested, mutated), repeatable })
    if (reason === null) fuzz_passed += 1
    else failures.push({ kind: 'fuzz', name, reason })
  }
  const { pass_rate_unit = DEFAULTS.unit, pass_rate_fuzz = DEFAULTS.fuzz } = manifest.tests.expected ?? {}
  const reaches = (passed: number, n: number, required: number): boolean => n > 0 && passed >= required * n
  return {
    skill_id: manifest.id,
    version: manifest.version,
    hash: await hashManifest(manifest),
    seed,
    unit: { n: cases.length, passed: unit_passed, required: pass_rate_unit },
    fuzz: { n: fuzz.length, passed: fuzz_passed, required: pass_rate_fuzz },
    passed: reaches(unit_passed, cases.length, pass_rate_unit) && reaches(fuzz_passed, fuzz.length, pass_rate_fuzz),
    failures: failures.slice(0, MOST_FAILURES),
  }
}

function unitFailure({ calls }: UnitCase, { verdict, status, effects }: CaseResult): string | null {
  if (verdict !== 'allow') return `the gate answered ${verdict}`
  if (status !== 'ok') return `the run ended as ${status}`
  const same =
    effects.length === calls.length &&
    effects.every(({ tool, input }, index) => tool === calls[index]?.tool && sameJson(input, calls[index]?.input))
  return same ? null : 'it called other tools or other arguments than the recorded turn'
}

type Fuzzed = { name: string; mutated: Mutated }

function fuzzCases(manifest: Manifest, { cases, roles, seed }: Omit<CiOptions, 'repeatable'>): Fuzzed[] {
  const { count = DEFAULTS.count, mutations = [] } = manifest.tests.fuzz ?? {}
  const names = mutations.length === 0 ? mutationNames : mutationNames.filter((name) => mutations.some((wanted) => isNamed(name, wanted)))
  if (cases.length === 0 || names.length === 0) return []
  return Array.from({ length: count }, (_, index) => index).flatMap((index): Fuzzed[] => {
    let drawn = 0
    const pick: Pick = (items) => items[Math.floor(unitHash(`${seed}\0${manifest.id}\0${index}\0${drawn++}`) * items.length)]
    const name = names[index % names.length]
    const tested = pick(cases)
    if (!name || !tested) return []
    const mutated = MUTATIONS[name]({ manifest, tested, others: cases, roles, pick })
    return mutated ? [{ name: `${name} of ${tested.name}`, mutated }] : []
  })
}

/** `alt_SLOT` names the mutation of one slot. */
const isNamed = (name: string, wanted: string): boolean => name === wanted || (name === 'alt_VALUE' && wanted.startsWith('alt_'))

/** A mutated case passes where nothing unsafe happened, whatever the outcome. */
function fuzzFailure(
  manifest: Manifest,
  { blocked, tested, times }: Mutated,
  { result, repeatable }: { result: CaseResult; repeatable: ReadonlySet<string> },
): string | null {
  const { verdict, status, effects } = result
  if (blocked && verdict === 'allow') return 'the gate allowed it'
  if (verdict !== 'allow') return null
  const outside = effects.filter(({ tool }) => !repeatable.has(tool))
  const compensating = new Set(manifest.plan.compensation.map(({ tool }) => tool))
  const acted = outside.filter(({ tool }) => !compensating.has(tool))
  if (times > 1 && acted.some((effect, index) => acted.findIndex((other) => isSame(other, effect)) < index))
    return 'an effect happened twice'
  if (status === 'ok' || status === 'reused') return changedText(tested, effects)
  const undone = acted.filter(({ tool }) => !isUndone(manifest, tool, outside))
  return undone.length === 0 ? null : `it ended as ${status}, and ${undone[0]?.tool} was not undone`
}

const isSame = (one: Effect, other: Effect): boolean => one.tool === other.tool && sameJson(one.input, other.input)

function isUndone({ plan }: Manifest, tool: string, effects: readonly Effect[]): boolean {
  const steps = new Set(plan.steps.flatMap((step, index) => (step.tool === tool ? [step.name ?? index, index] : [])))
  const inverses = plan.compensation.filter(({ step }) => step === undefined || steps.has(step))
  return inverses.some((inverse) => effects.some((effect) => effect.tool === inverse.tool))
}

/** The text of an input reaches the tools as it is: no placeholder in it is filled. */
function changedText({ inputs }: UnitCase, effects: readonly Effect[]): string | null {
  const hostile = Object.values(inputs).filter((value) => typeof value === 'string' && value.includes('{{'))
  const called = JSON.stringify(effects)
  const lost = hostile.some((value) => !called.includes(JSON.stringify(value).slice(1, -1)))
  return lost ? 'a placeholder in an input was filled' : null
}
