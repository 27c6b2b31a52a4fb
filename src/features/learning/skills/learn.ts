import type { Manifest } from '../../../skills/manifest/manifest.ts'
import type { CiReport } from '../../../contract/reports/skill-test.ts'
import { testSkill } from '../../../skills/ci/ci.ts'
import type { UnitCase } from '../../../skills/ci/run-case.ts'
import { compilePattern, skillIdOf, type CompileOptions } from './compile.ts'
import { mine, MINING, type MiningLimits, type Transition } from './mine.ts'
import type { Trace } from './trace.ts'

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
  const traces =
    history.length <= WINDOW
      ? history
      : Array.from(history)
          .sort((one, other) => one.at - other.at)
          .slice(-WINDOW)
  const mined = mine(traces, limits, trusted)
  const rejected = mined.rejected.map(({ symbols, turns, reason }) => ({ what: symbols.join(' → '), turns, reason }))
  const candidates: SkillCandidate[] = []
  const repeatable = new Set(Array.from(options.tools).flatMap(([name, facts]) => (facts.repeatable ? [name] : [])))
  for (const pattern of mined.patterns) {
    yield
    const { symbols, occurrences, support, success, baseline_usd, delta_cost, delta_p95 } = pattern
    const within = new Set(occurrences.map(({ trace }) => trace))
    const others = traces.filter((trace) => !within.has(trace))
    const compiled = compilePattern(pattern, { ...options, others, previous: await latest(skillIdOf(pattern, options.scope)) })
    if (!compiled.ok) {
      rejected.push({ what: symbols.join(' → '), turns: occurrences.length, reason: compiled.reason })
      continue
    }
    const { manifest, changed, cases } = compiled
    const report = await testSkill(manifest, { cases, repeatable, roles: options.roles, seed })
    const evidence = {
      turns: occurrences.length,
      support,
      success,
      baseline_usd,
      delta_cost,
      delta_p95,
      traces: occurrences.map(({ trace }) => trace.trace_id),
    }
    candidates.push({ manifest, changed, evidence, report, cases })
  }
  return { turns: traces.length, candidates, rejected, transitions: mined.transitions }
}
