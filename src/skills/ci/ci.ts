import { sameJson } from '../../base/json.ts'
import type { CiReport } from '../../contract/reports/skill-test.ts'
import { unitHash } from '../../evidence/draw.ts'
import { hashManifest, type Manifest } from '../manifest/manifest.ts'
import { placesIn } from '../plan/template.ts'
import { MUTATIONS, mutationNames, type Draw, type Mutated } from './mutations.ts'
import { runCase, type CaseResult, type Effect, type UnitCase } from './run-case.ts'

const DEFAULTS = { unit: 0.95, fuzz: 0.85, count: 50 } as const
const MOST_FAILURES = 20
/** So that a test ends within seconds. */
const MOST_FUZZ = 200

type Found = { name: string; reason: string }

/** `lacking`: the cases that cannot be run, with the reason; each one fails. */
export type CiOptions = {
  cases: readonly UnitCase[]
  lacking?: readonly Found[]
  /** The faults of each run, whatever the cases say: with one of these the test fails. */
  misfits?: readonly Found[]
  /** The tools whose calls need not be undone. */
  repeatable: ReadonlySet<string>
  roles: readonly string[]
  seed: string
}

/** Runs a skill's cases and seeded mutations of them. Nothing outside is called. */
export async function testSkill(
  manifest: Manifest,
  { cases, lacking = [], misfits = [], repeatable, roles, seed }: CiOptions,
): Promise<CiReport> {
  const failures = [...misfits, ...lacking].map((one): CiReport['failures'][number] => ({ kind: 'unit', ...one }))
  let unit_passed = 0
  for (const tested of cases) {
    const reason = unitFailure(tested, await runCase(manifest, tested, { roles, fault: null, times: 1 }))
    if (reason === null) unit_passed += 1
    else failures.push({ kind: 'unit', name: tested.name, reason })
  }
  const running = cases.filter(({ verdict = 'allow' }) => verdict === 'allow' || verdict === 'needs_approval')
  const fuzz = fuzzCases(manifest, { cases: running, roles, seed })
  let fuzz_passed = 0
  for (const { name, mutated } of fuzz) {
    const reason = fuzzFailure(manifest, mutated, { result: await runCase(manifest, mutated.tested, mutated), repeatable })
    if (reason === null) fuzz_passed += 1
    else failures.push({ kind: 'fuzz', name, reason })
  }
  if (fuzz.length === 0) failures.push({ kind: 'fuzz', name: 'tests.fuzz', reason: 'no mutation was run' })
  const { pass_rate_unit = 0, pass_rate_fuzz = 0 } = manifest.tests.expected ?? {}
  const required = { unit: Math.max(DEFAULTS.unit, pass_rate_unit), fuzz: Math.max(DEFAULTS.fuzz, pass_rate_fuzz) }
  const reaches = (passed: number, n: number, share: number): boolean => n > 0 && passed >= share * n
  const n = cases.length + lacking.length + misfits.length
  return {
    skill_id: manifest.id,
    version: manifest.version,
    hash: await hashManifest(manifest),
    seed,
    cases: cases.some(({ assumes_conditions }) => assumes_conditions) ? 'generated' : 'declared',
    simulated: true,
    unit: { n, passed: unit_passed, required: required.unit },
    fuzz: { n: fuzz.length, passed: fuzz_passed, required: required.fuzz },
    passed: misfits.length === 0 && reaches(unit_passed, n, required.unit) && reaches(fuzz_passed, fuzz.length, required.fuzz),
    failures: failures.slice(0, MOST_FAILURES),
  }
}

/** Why a run is not what its case says; null if it is. */
export function unitFailure({ calls, verdict: expected = 'allow', outputs: wanted }: UnitCase, result: CaseResult): string | null {
  const { verdict, reason, status, outputs, effects } = result
  if (verdict !== expected) return `the gate answered ${verdict}: ${reason}`
  if (status === null) return null
  if (status !== 'ok') return `the run ended as ${status}: ${reason}`
  const differs = Object.entries(wanted ?? {}).find(([name, value]) => !sameJson(value, outputs[name]))
  if (differs) return `the output ${differs[0]} is ${JSON.stringify(outputs[differs[0]])}, not ${JSON.stringify(differs[1])}`
  const same =
    calls.length === 0 ||
    (effects.length === calls.length &&
      effects.every(({ tool, input }, index) => tool === calls[index]?.tool && sameJson(input, calls[index]?.input)))
  return same ? null : 'it called other tools or other arguments than the recorded turn'
}

type Fuzzed = { name: string; mutated: Mutated }

function fuzzCases(manifest: Manifest, { cases, roles, seed }: Pick<CiOptions, 'cases' | 'roles' | 'seed'>): Fuzzed[] {
  const { count = DEFAULTS.count, mutations = [] } = manifest.tests.fuzz ?? {}
  const names = mutations.length === 0 ? mutationNames : mutationNames.filter((name) => mutations.some((wanted) => isNamed(name, wanted)))
  if (cases.length === 0 || names.length === 0) return []
  return Array.from({ length: Math.min(count, MOST_FUZZ) }, (_, index) => index).flatMap((index): Fuzzed[] => {
    let drawn = 0
    const pick: Draw = (items) => items[Math.floor(unitHash(`${seed}\0${manifest.id}\0${index}\0${drawn++}`) * items.length)]
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
  const { status, effects } = result
  if (blocked && status !== null) return 'the gate allowed it'
  if (status === null) return null
  const outside = effects.filter(({ tool }) => !repeatable.has(tool))
  const compensating = new Set(manifest.plan.compensation.map(({ tool }) => tool))
  const acted = outside.filter(({ tool }) => !compensating.has(tool))
  if (times > 1 && acted.some((effect, index) => acted.findIndex((other) => isSame(other, effect)) < index))
    return 'an effect happened twice'
  if (status === 'ok' || status === 'reused') return changedText(manifest, tested, effects)
  const undone = acted.filter(({ tool }) => !isUndone(manifest, tool, outside))
  return undone.length === 0 ? null : `it ended as ${status}, and ${undone[0]?.tool} was not undone`
}

const isSame = (one: Effect, other: Effect): boolean => one.tool === other.tool && sameJson(one.input, other.input)

function isUndone({ plan }: Manifest, tool: string, effects: readonly Effect[]): boolean {
  const steps = new Set(plan.steps.flatMap((step, index) => (step.tool === tool ? [step.name ?? index, index] : [])))
  const inverses = plan.compensation.filter(({ step }) => step === undefined || steps.has(step))
  return inverses.some((inverse) => effects.some((effect) => effect.tool === inverse.tool))
}

/** The text of an input reaches the tools that take it as it is: no placeholder in it is filled. */
function changedText({ plan }: Manifest, { inputs }: UnitCase, effects: readonly Effect[]): string | null {
  const called = plan.steps.filter(({ tool }) => effects.some((effect) => effect.tool === tool))
  const used = new Set(called.flatMap(({ args }) => placesIn(args).flatMap(({ path }) => (path?.[0] === 'inputs' ? [path[1]] : []))))
  const hostile = Object.entries(inputs).filter(([name, value]) => used.has(name) && typeof value === 'string' && value.includes('{{'))
  const sent = JSON.stringify(effects)
  const lost = hostile.some(([, value]) => !sent.includes(JSON.stringify(value).slice(1, -1)))
  return lost ? 'a placeholder in an input was filled' : null
}
