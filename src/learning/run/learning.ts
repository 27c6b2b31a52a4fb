import { storedReflex, storedReflexVersions } from '../../artifacts/platform.ts'
import type { Drift } from '../../contract/reports/learning/learner-api.ts'
import type { Env } from '../../env.ts'
import { isolateSandbox } from '../../reflexes/isolate-sandbox.ts'
import { sampleContext } from '../../reflexes/reflex-context.ts'
import { runReflex } from '../../reflexes/run-reflex.ts'
import type { Program } from '../../reflexes/sandbox.ts'
import { storeOf } from '../../store/store.ts'
import type { Episode } from '../episode.ts'
import { type Learned, learnReflexesInSteps } from '../reflexes/learn.ts'
import type { Steps } from '../../base/steps.ts'
import { mineInSteps, type MinedSkills } from './skills.ts'
import type { Registered } from './findings.ts'
import { actsOfAction } from '../episodes/decided.ts'
import { stratumOfAct, withoutForgotten } from './policy.ts'
import type { LearnerStore, Run } from './store.ts'

/** Events that a drifted reflex decides in one step. */
const STEP = 50

/** `learned`, `mined`: null if the run does not learn them, or not again. */
export type Outcome = { episodes: Episode[]; forgotten: string[]; learned: Learned | null; mined: MinedSkills | null }
/** The state of the step `learn`, in memory only. If the object dies, it begins again. */
export type Learning = {
  key: string
  steps: AsyncGenerator<undefined, Outcome, undefined>
  proved: Registered[]
  taken_over: ReadonlyMap<string, number>
}

export const keyOf = ({ run_id, round }: Run): string => `${run_id} ${round}`

export async function beginLearning(run: Run, { env, store }: { env: Env; store: LearnerStore }): Promise<Learning> {
  const drifted = await programsOf(run.drifted, env)
  const { proved, taken_over } = await versionsOf(store.get('registered') ?? [], { env, drifted: run.drifted })
  const settled = run.round === 0 ? store.settled() : new Set<string>()
  const steps = learnInSteps(store.newest(run.window), { run, drifted, taken_over, settled, env })
  return { key: keyOf(run), steps, proved, taken_over }
}

type Drifted = { program: Program; since_seq: number }
type Given = { run: Run; env: Env; drifted: readonly Drifted[]; taken_over: Learning['taken_over']; settled: ReadonlySet<string> }

async function* learnInSteps(
  history: Episode[],
  { run, env, drifted, taken_over, settled }: Given,
): AsyncGenerator<undefined, Outcome, undefined> {
  let episodes = history
  for (const one of drifted) episodes = yield* withoutDrifted(episodes, one)
  const left = new Set(episodes.map(({ id }) => id))
  const forgotten = history.flatMap(({ id }) => (left.has(id) ? [] : [id]))
  const trusted = new Set(run.trusted_sources)
  const fair = ({ at }: Episode, act: { kind: string; name: string } | null) => at > (taken_over.get(stratumOfAct(act)) ?? -Infinity)
  const learned = run.kinds.includes('reflex') ? yield* learnReflexesInSteps(episodes, { trusted, fair }) : null
  // Answers of dry turns have no outputs, which the next call of a sequence may depend on.
  const acted = episodes.filter(({ id }) => !settled.has(id))
  const mined = run.round === 0 && run.kinds.includes('skill') ? yield* mineInSteps(acted, { run, env }) : null
  return { episodes, learned, forgotten, mined }
}

function* withoutDrifted(episodes: Episode[], { program, since_seq }: Drifted): Steps<Episode[]> {
  const fired: (Episode['acts'] | null)[] = []
  for (const { saw } of episodes) {
    if (fired.length % STEP === 0) yield
    const { action } = runReflex(isolateSandbox(), program, { ...sampleContext, ...saw })
    fired.push(action && actsOfAction(action))
  }
  return withoutForgotten(episodes, fired, since_seq)
}

async function programsOf(drifted: readonly Drift[], env: Env): Promise<Drifted[]> {
  const found = await Promise.all(
    drifted.map(async ({ id, version, since_seq }) => {
      const program = await storedReflex(storeOf(env), id, version)
      return program ? [{ program, since_seq }] : []
    }),
  )
  return found.flat()
}

/** The versions of earlier runs that are being proved, and when others took over. */
async function versionsOf(
  registered: readonly Registered[],
  { env, drifted }: { env: Env; drifted: readonly Drift[] },
): Promise<Pick<Learning, 'proved' | 'taken_over'>> {
  const proved: Registered[] = []
  const taken_over = new Map<string, number>()
  for (const one of registered) {
    if (drifted.some(({ id, version }) => id === one.id && version === one.version)) continue
    const versions = await storedReflexVersions(storeOf(env), one.id)
    const found = versions.find(({ version }) => version === one.version)
    if (found?.state === 'shadow' && found.state_reason === null) proved.push(one)
    if (found?.state === 'active') taken_over.set(one.stratum, Math.max(found.state_at, taken_over.get(one.stratum) ?? 0))
  }
  return { proved, taken_over }
}
