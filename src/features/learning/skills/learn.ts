import type { Manifest } from '../../../skills/manifest/manifest.ts'
import type { CiReport } from '../../../contract/reports/skill-test.ts'
import { testSkill } from '../../../skills/ci/ci.ts'
import type { UnitCase } from '../../../skills/ci/run-case.ts'
import { compilePattern, skillIdOf, type CompiledSkill, type CompileOptions } from './compile.ts'
import { mine, MINING, type MiningLimits, type Pattern, type Transition } from './mine.ts'
import { proveSkill, type SkillProof } from './prove.ts'
import type { Occurrence, Trace } from './trace.ts'

/** Turns that are read: the latest ones. */
const WINDOW = 10_000

export type SkillLearnOptions = Omit<CompileOptions, 'others' | 'previous'> & {
  seed: string
  limits?: MiningLimits
  /** Senders whose turns count without limit. */
  trusted?: ReadonlySet<string>
  /** The latest version of a skill, or null. */
  latest: (id: string) => Manifest | null | Promise<Manifest | null>
}
export type SkillCandidate = {
  manifest: Manifest
  /** False if the latest version is the same. */
  changed: boolean
  evidence: {
    turns: number
    support: number
    success: number
    baseline_usd: number
    delta_cost: number
    delta_p95: number
    traces: string[]
    /** On turns after the ones that taught it. */
    proof: SkillProof
  }
  report: CiReport
  /** The cases that the manifest names. */
  cases: UnitCase[]
}
export type LearnedSkills = {
  turns: number
  candidates: SkillCandidate[]
  rejected: { what: string; turns: number; reason: string }[]
  transitions: Transition[]
}

const ordered = (traces: readonly Trace[]): Trace[] => Array.from(traces).sort((one, other) => one.at - other.at)

/** Occurrences that teach a sequence, at least; the later ones prove it. */
const LEAST_TAUGHT = 10
const MOST_TAUGHT_SHARE = 0.3

/**
 * The earlier occurrences, from which a skill is compiled. Their number only doubles, so that the
 * same history with more turns mostly gives the same version.
 */
function taughtOf(occurrences: readonly Occurrence[]): Occurrence[] {
  let count = LEAST_TAUGHT
  while (2 * count <= MOST_TAUGHT_SHARE * occurrences.length) count *= 2
  return occurrences.slice(0, count)
}

type Proven = Extract<CompiledSkill, { ok: true }> & { proof: SkillProof }

/**
 * A skill from the earlier turns, proven on the later ones. Where one of them disagrees, or most
 * would not be offered it, the turns may have changed: then another from the newer half, and the
 * better one of both.
 */
async function provenBest(
  pattern: Pattern,
  { traces, ...options }: CompileOptions & { traces: readonly Trace[] },
): Promise<Proven | Extract<CompiledSkill, { ok: false }>> {
  const all = pattern.occurrences
  let best: Proven | null = null
  for (const from of [0, Math.floor(all.length / 2)]) {
    const taught = taughtOf(all.slice(from))
    const compiled = compilePattern({ ...pattern, occurrences: taught }, options)
    if (!compiled.ok) {
      if (best === null) return compiled
      continue
    }
    const until = Math.max(...taught.map(({ trace }) => trace.at))
    const taught_by = new Set(taught.map(({ trace }) => trace))
    const later = ordered(traces).filter((trace) => trace.at > until && !taught_by.has(trace))
    const proof = await proveSkill(compiled.manifest, later, options.roles)
    if (best === null || proof.low > best.proof.low) best = { ...compiled, proof }
    const isMost = proof.turns >= (all.length - taught.length) / 2
    if (isMost && proof.agreed === proof.turns) break
  }
  return best ?? { ok: false, reason: 'no turn teaches it' }
}

/** Skills from a history: mined, compiled and tested. The same history gives the same skills. */
export async function learnSkills(history: readonly Trace[], options: SkillLearnOptions): Promise<LearnedSkills> {
  const steps = mineSkills(history, options)
  for (;;) {
    const step = await steps.next()
    if (step.done) return step.value
  }
}

/**
 * The same in steps, so that an object can serve others between two of them: one mines, each other
 * one compiles and tests a sequence. Episodes are traces.
 */
export async function* mineSkills(
  history: readonly Trace[],
  { seed, limits = MINING, trusted, latest, ...options }: SkillLearnOptions,
): AsyncGenerator<undefined, LearnedSkills, undefined> {
  const traces = history.length <= WINDOW ? history : ordered(history).slice(-WINDOW)
  const mined = mine(traces, limits, trusted)
  const rejected = mined.rejected.map(({ symbols, turns, reason }) => ({ what: symbols.join(' → '), turns, reason }))
  const candidates: SkillCandidate[] = []
  const repeatable = new Set(Array.from(options.tools).flatMap(([name, facts]) => (facts.repeatable ? [name] : [])))
  for (const pattern of mined.patterns) {
    yield
    const { symbols, occurrences, support, success, baseline_usd, delta_cost, delta_p95 } = pattern
    const within = new Set(occurrences.map(({ trace }) => trace))
    const others = traces.filter((trace) => !within.has(trace))
    const previous = await latest(skillIdOf(pattern, options.scope))
    const compiled = await provenBest(pattern, { ...options, others, previous, traces })
    if (!compiled.ok) {
      rejected.push({ what: symbols.join(' → '), turns: occurrences.length, reason: compiled.reason })
      continue
    }
    const { manifest, changed, cases, proof } = compiled
    const report = await testSkill(manifest, { cases, repeatable, roles: options.roles, seed })
    const evidence = {
      turns: occurrences.length,
      support,
      success,
      baseline_usd,
      delta_cost,
      delta_p95,
      traces: occurrences.map(({ trace }) => trace.trace_id),
      proof,
    }
    candidates.push({ manifest, changed, evidence, report, cases })
  }
  return { turns: traces.length, candidates, rejected, transitions: mined.transitions }
}
