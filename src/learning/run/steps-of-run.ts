import type { LearnedVersion } from '../../contract/reports/learning/learner-api.ts'
import type { Env } from '../../env.ts'
import { reflexes } from '../../artifacts/kinds.ts'
import { storeOf } from '../../store/store.ts'
import type { Episode } from '../episode.ts'
import { learnReflexesInSteps, type Learned } from '../reflexes/learn.ts'
import type { Steps } from '../steps.ts'
import { findingsOf, placeOf, type Registered } from './findings.ts'
import { coverageOf, isWorthProof, nextAt, stratumOfAct } from './policy.ts'
import type { LearnerStore, Run } from './store.ts'

/** A part of a scope's history. `watermark`: where a reader that stops here begins again. */
export type Batch = { episodes: Episode[]; skipped: { reason: string; n: number }[]; watermark: string }
/** Reads the decisions of a scope after a watermark, oldest first. */
export type History = (env: Env, of: { scope: string; after: string | null }) => AsyncIterable<Batch>

/** Steps of the learner between two pauses, some 5 ms each. */
const STEPS_AT_ONCE = 5
/** Objects that learning may kill. */
const MOST_BEGUN = 4

type Parts = { env: Env; store: LearnerStore; history: History }
/** The state of `learn`, in memory only. If the object dies, it begins again. */
type Learning = { key: string; steps: Steps<Learned>; proved: Registered[]; taken_over: ReadonlyMap<string, number> }

/**
 * The steps of a run: read → learn → register. Each writes its results in one transaction; until
 * then it may be repeated.
 */
export class RunSteps {
  readonly #parts: Parts
  #reading: { run_id: string; batches: AsyncIterator<Batch> } | null = null
  #learning: Learning | null = null

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async next(): Promise<void> {
    const { run } = this.#parts.store
    if (run?.status !== 'running') return
    const { phase } = run.progress
    if (phase === 'read') await this.#read(run)
    else if (phase === 'learn') await this.#learn(run)
    else if (phase === 'register') await this.#register(run)
  }

  async #read(run: Run): Promise<void> {
    const { env, store, history } = this.#parts
    if (this.#reading?.run_id !== run.run_id) {
      const batches = history(env, { scope: run.scope, after: store.get('position') ?? null })
      this.#reading = { run_id: run.run_id, batches: batches[Symbol.asyncIterator]() }
    }
    const { value, done } = await this.#reading.batches.next().catch((error: unknown) => {
      // An iterator that threw has ended: a retry opens another.
      this.#reading = null
      throw error
    })
    store.unit(() => {
      if (done !== true) return this.#received(run, value)
      this.#reading = null
      store.write({ ...run, progress: { phase: 'learn', done: 0, of: null } })
    })
  }

  #received(run: Run, { episodes, skipped, watermark }: Batch): void {
    const { store } = this.#parts
    const added = store.add(episodes)
    store.trim(run.window)
    store.put('position', watermark)
    const policy = store.policy
    store.put('policy', { ...policy, decisions: policy.decisions + added })
    const read = run.episodes.read + added
    const sums = new Map(run.episodes.skipped.map(({ reason, n }) => [reason, n]))
    for (const { reason, n } of skipped) sums.set(reason, (sums.get(reason) ?? 0) + n)
    const all = [...sums].sort(([one], [other]) => (one < other ? -1 : 1)).map(([reason, n]) => ({ reason, n }))
    store.write({
      ...run,
      failures: 0,
      episodes: { ...run.episodes, read, skipped: all },
      progress: { phase: 'read', done: read, of: null },
    })
  }

  async #learn(run: Run): Promise<void> {
    const learning = (this.#learning = this.#learning?.key === keyOf(run) ? this.#learning : await this.#begin(run))
    if (learning === null) return
    for (let step = 0; step < STEPS_AT_ONCE; step += 1) {
      const next = learning.steps.next()
      if (!next.done) continue
      this.#learning = null
      return this.#learned(run, next.value, learning)
    }
  }

  /** Null if learning has killed the object too often. */
  async #begin(run: Run): Promise<Learning | null> {
    const { store } = this.#parts
    if (run.begun >= MOST_BEGUN) {
      store.unit(() => store.write(ended(run, 'failed', `Learning stopped its object ${run.begun} times.`, Date.now())))
      return null
    }
    const begun = { ...run, begun: run.begun + 1 }
    store.unit(() => store.write(begun))
    const { proved, taken_over } = await this.#versions()
    const episodes = store.newest(run.window)
    const steps = learnReflexesInSteps(episodes, {
      trusted: new Set(run.trusted_sources),
      fair: ({ at }, act) => at > (taken_over.get(stratumOfAct(act)) ?? -Infinity),
    })
    return { key: keyOf(begun), steps, proved, taken_over }
  }

  /** The versions of earlier runs that are being proved, and when others took over. */
  async #versions(): Promise<Pick<Learning, 'proved' | 'taken_over'>> {
    const { env, store } = this.#parts
    const proved: Registered[] = []
    const taken_over = new Map<string, number>()
    for (const one of store.get('registered') ?? []) {
      const versions = await reflexes.versions(storeOf(env), one.id)
      const found = versions.find(({ version }) => version === one.version)
      if (found?.state === 'shadow' && found.state_reason === null) proved.push(one)
      if (found?.state === 'active') taken_over.set(one.stratum, Math.max(found.state_at, taken_over.get(one.stratum) ?? 0))
    }
    return { proved, taken_over }
  }

  #learned(run: Run, learned: Learned, { proved, taken_over }: Learning): void {
    const { store } = this.#parts
    const policy = store.policy
    const covers = [...policy.covers, coverageOf(learned)].slice(-10)
    const worth = taken_over.size > 0 || isWorthProof(covers, learned.episodes.length)
    const { finds, rejected } = findingsOf(learned, { proved, worth })
    const [first, last] = [learned.episodes[0], learned.episodes.at(-1)]
    const episodes = {
      ...run.episodes,
      used: learned.episodes.length,
      from: first ? placeOf(first) : null,
      to: last ? placeOf(last) : null,
    }
    store.unit(() => {
      store.put('finds', finds)
      store.put('policy', { ...policy, covers, next: nextAt(policy.decisions, taken_over.size > 0) })
      store.write({ ...run, begun: 0, failures: 0, episodes, rejected, progress: { phase: 'register', done: 0, of: finds.length } })
    })
  }

  /** Registers one find. If the object dies meanwhile, the scope answers the same again. */
  async #register(run: Run): Promise<void> {
    const { env, store } = this.#parts
    const [find, ...rest] = store.get('finds') ?? []
    if (!find) return store.unit(() => store.write(ended(run, 'done', answerOf(run), Date.now())))
    const version: LearnedVersion = { ...find.version, run_id: run.run_id }
    const adopted = await env.SCOPE.getByName(run.scope).adopt(version)
    store.unit(() => {
      store.put('finds', rest)
      const progress = { ...run.progress, done: run.progress.done + 1 }
      if (!adopted.ok) {
        const rejected = [...run.rejected, { what: find.candidate.decision, reason: adopted.detail }]
        return store.write({ ...run, failures: 0, rejected, progress })
      }
      const { id, version: number } = adopted
      const replaced = new Set(version.replaces.map(nameOf))
      const registered = (store.get('registered') ?? []).filter(
        (one) => !replaced.has(nameOf(one)) && nameOf(one) !== nameOf({ id, version: number }),
      )
      const { stratum, forecast } = find
      store.put('registered', [...registered, { id, version: number, stratum, forecast, run_id: run.run_id }].slice(-MOST_REGISTERED))
      const candidates = [...run.candidates, { ...find.candidate, id, version: String(number) }]
      store.write({ ...run, failures: 0, candidates, found: candidates.length, progress })
    })
  }
}

const MOST_REGISTERED = 200

const keyOf = ({ run_id, round }: Run): string => `${run_id} ${round}`
const nameOf = ({ id, version }: { id: string; version: number }): string => `${id}@${version}`

export const ended = (run: Run, status: 'done' | 'failed', answer: string, now: number): Run => ({
  ...run,
  status,
  answer,
  ended_at: now,
  progress: { ...run.progress, phase: 'done' },
})

function answerOf({ candidates, rejected, episodes: { read, used, skipped } }: Run): string {
  if (used === 0) {
    const why =
      skipped.length === 0
        ? 'the scope has decided nothing by a turn yet'
        : `of the decisions that it read, none could be used: ${skipped[0]?.reason}`
    return `There is nothing to learn from: ${why}.`
  }
  const from = `${used} ${used === 1 ? 'decision' : 'decisions'}, ${read} of them new`
  const [first] = rejected
  if (candidates.length === 0) return `Nothing was learned from ${from}${first ? `: ${first.what}: ${first.reason}` : ''}.`
  return `${candidates.length} learned from ${from}; ${rejected.length} rejected.`
}
