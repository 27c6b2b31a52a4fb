import type { LearnedVersion } from '../../contract/reports/learning/learner-api.ts'
import type { Env } from '../../env.ts'
import type { Episode } from '../episode.ts'
import type { Correction } from '../episodes/people.ts'
import type { Learned } from '../reflexes/learn.ts'
import { askAgain } from './asking.ts'
import { findingsOf, placeOf, type Ask } from './findings.ts'
import { beginLearning, keyOf, type Learning, type Outcome } from './learning.ts'
import { coverageOf, isWorthProof, nextAt, SETTLINGS, worthAsking } from './policy.ts'
import { answerOf, ended } from './ending.ts'
import type { LearnerStore, Run } from './store.ts'

/**
 * A part of a scope's history. `watermark`: a reader that stops here continues after it, and reads
 * from `lead` to it again.
 */
export type Batch = {
  episodes: Episode[]
  corrections?: Correction[]
  skipped: { reason: string; count: number }[]
  watermark: number
  lead?: number
}
/** Reads the decisions of a scope after a watermark, oldest first. */
export type History = (env: Env, of: { scope: string; after: number; lead?: number | undefined }) => AsyncIterable<Batch>

/** Steps of the learner between two pauses, some 5 ms each. */
const STEPS_AT_ONCE = 5
/** Objects that learning may kill. */
const MOST_BEGUN = 4
/** Events that a run asks about again: each takes two dry turns. */
const MOST_ASKS = 100
const MOST_REGISTERED = 200
const MOST_COVERS = 10

type Parts = { env: Env; store: LearnerStore; history: History }

/**
 * The steps of a run: read → learn → ask → … → register. Each writes its results in one
 * transaction; until then it may be repeated.
 */
export class RunSteps {
  readonly #parts: Parts
  #reading: { run_id: string; batches: AsyncIterator<Batch> } | null = null
  #learning: Learning | null = null

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Forgets what it has in memory of the current step. */
  restart(): void {
    this.#reading = null
    this.#learning = null
  }

  async next(): Promise<void> {
    const { run } = this.#parts.store
    if (run?.status !== 'running') return
    const { phase } = run.progress
    if (phase === 'read') await this.#read(run)
    else if (phase === 'learn') await this.#learn(run)
    else if (phase === 'ask') await this.#ask(run)
    else if (phase === 'register') await this.#register(run)
  }

  async #read(run: Run): Promise<void> {
    const { env, store, history } = this.#parts
    if (this.#reading?.run_id !== run.run_id) {
      const batches = history(env, { scope: run.scope, after: store.get('position') ?? 0, lead: store.get('lead') })
      this.#reading = { run_id: run.run_id, batches: batches[Symbol.asyncIterator]() }
    }
    const reading = this.#reading
    // A batch that is not stored would be lost: a retry reads it again.
    this.#reading = null
    const { value, done } = await reading.batches.next()
    store.unit(() => {
      // A request may have joined a scheduled run in the meantime.
      const { quiet } = store.run ?? run
      if (done !== true) return this.#received({ ...run, quiet }, value)
      const { decisions, next } = store.policy
      if (quiet && decisions < next) return store.write(ended(run, 'done', 'There are too few new decisions.', Date.now()))
      store.write({ ...run, quiet: false, progress: { phase: 'learn', done: 0, of: null } })
    })
    if (done !== true) this.#reading = reading
  }

  #received(run: Run, { episodes, corrections = [], skipped, watermark, lead }: Batch): void {
    const { store } = this.#parts
    const added = store.add(episodes)
    store.correct(corrections)
    store.trim(run.window)
    store.put('position', watermark)
    if (lead !== undefined) store.put('lead', lead)
    const policy = store.policy
    store.put('policy', { ...policy, decisions: policy.decisions + added })
    const read = run.episodes.read + added
    const sums = new Map(run.episodes.skipped.map(({ reason, n }) => [reason, n]))
    for (const { reason, count } of skipped) sums.set(reason, (sums.get(reason) ?? 0) + count)
    const all = [...sums].sort(([one], [other]) => (one < other ? -1 : 1)).map(([reason, n]) => ({ reason, n }))
    store.write({
      ...run,
      failures: 0,
      episodes: { ...run.episodes, read, skipped: all },
      progress: { phase: 'read', done: read, of: null },
    })
  }

  async #learn(run: Run): Promise<void> {
    if (this.#learning?.key !== keyOf(run)) return this.#begin(run)
    const { steps } = this.#learning
    for (let step = 0; step < STEPS_AT_ONCE; step += 1) {
      const next = await steps.next()
      if (!next.done) continue
      const learning = this.#learning
      this.#learning = null
      return this.#learned(run, next.value, learning)
    }
  }

  async #begin(run: Run): Promise<void> {
    const { store } = this.#parts
    if (run.begun >= MOST_BEGUN) {
      const answer = `Learning stopped its object ${run.begun} times.`
      return store.unit(() => store.write(ended(run, 'failed', answer, Date.now())))
    }
    store.unit(() => store.write({ ...run, begun: run.begun + 1 }))
    this.#learning = await beginLearning(run, this.#parts)
  }

  #learned(run: Run, { episodes: used, learned, mined, forgotten }: Outcome, { proved, taken_over }: Learning): void {
    const { store } = this.#parts
    const [first, last] = [used[0], used.at(-1)]
    const ends = { from: first ? placeOf(first) : null, to: last ? placeOf(last) : null }
    const policy = store.policy
    const { finds, grounds, rejected, covers, asks } = learned
      ? this.#judged(run, learned, { proved, taken_over })
      : { finds: [], grounds: [], rejected: [], covers: policy.covers, asks: [] }
    store.unit(() => {
      store.forget(forgotten)
      store.putFinds(finds)
      // Learning again in the same run keeps the skills of its first round.
      if (run.round === 0) {
        store.putSkills(mined?.found ?? [])
        store.put('unmined', mined?.rejected ?? [])
      }
      const found = store.skills
      store.ground(run.run_id, [...grounds, ...found.map((one) => one.grounds)])
      if (learned) store.put('policy', { ...policy, covers, next: nextAt(policy.decisions, taken_over.size > 0) })
      const phase = asks.length > 0 ? ('ask' as const) : ('register' as const)
      const progress = { phase, done: 0, of: phase === 'ask' ? asks.length : finds.length + found.length }
      store.write({
        ...run,
        begun: 0,
        failures: 0,
        changed: 0,
        drifted: [],
        asks,
        progress,
        episodes: { ...run.episodes, used: used.length, ...ends },
        rejected: [...rejected, ...(store.get('unmined') ?? [])],
      })
    })
  }

  /** The reflexes that are worth proving, and the events to ask about again. */
  #judged(run: Run, learned: Learned, { proved, taken_over }: Pick<Learning, 'proved' | 'taken_over'>) {
    const { store } = this.#parts
    // Learning again in the same run replaces its own figure.
    const before = run.round === 0 ? store.policy.covers : store.policy.covers.slice(0, -1)
    const covers = [...before, coverageOf(learned)].slice(-MOST_COVERS)
    const worth = taken_over.size > 0 || isWorthProof(covers, learned.episodes.length)
    const known = store.settled()
    const disputed =
      run.round < SETTLINGS
        ? worthAsking(learned.disputed, learned.episodes.length, (id) => known.has(id) || store.episode(id)?.teacher.by === 'person')
        : []
    const asks = disputed.slice(0, MOST_ASKS - run.settled).map((id): Ask => ({ id, answers: [] }))
    return { ...findingsOf(learned, { proved, worth }), covers, asks }
  }

  /** Where decisions changed, learns again; else what was found is registered. */
  async #ask(run: Run): Promise<void> {
    const { store } = this.#parts
    const { answered, after } = await askAgain(run, this.#parts)
    store.unit(() => {
      const changed = run.changed + after(store)
      const next = { ...run, failures: 0, changed, asks: answered.asks, settled: run.settled + answered.settled }
      const episodes = { ...run.episodes, asked_again: next.settled }
      const of = store.finds.length + store.skills.length
      if (next.asks.length > 0)
        store.write({ ...next, episodes, progress: { ...run.progress, done: run.progress.done + answered.settled } })
      else if (changed === 0) store.write({ ...next, episodes, progress: { phase: 'register', done: 0, of } })
      else store.write({ ...next, episodes, round: run.round + 1, progress: { phase: 'learn', done: 0, of: null } })
    })
  }

  /** Registers one find. If the object dies meanwhile, the scope answers the same again. */
  async #register(run: Run): Promise<void> {
    const { env, store } = this.#parts
    const [find, ...rest] = store.finds
    if (!find) return this.#registerSkill(run)
    const version: LearnedVersion = { ...find.version, run_id: run.run_id }
    const adopted = await env.SCOPE.getByName(run.scope).adopt(version)
    store.unit(() => {
      store.putFinds(rest)
      const progress = { ...run.progress, done: run.progress.done + 1 }
      if (!adopted.ok) {
        const rejected = [...run.rejected, { what: find.candidate.decision, reason: adopted.detail }]
        return store.write({ ...run, failures: 0, rejected, progress })
      }
      const { id, version: number } = adopted
      const replaced = new Set([...version.replaces.map(nameOf), nameOf({ id, version: number })])
      const registered = (store.get('registered') ?? []).filter((one) => !replaced.has(nameOf(one)))
      const { stratum, forecast } = find
      store.put('registered', [...registered, { id, version: number, stratum, forecast, run_id: run.run_id }].slice(-MOST_REGISTERED))
      const candidates = [...run.candidates, { ...find.candidate, id, version: String(number) }]
      store.write({ ...run, failures: 0, candidates, found: candidates.length, progress })
    })
  }

  /** The same for one skill. The run ends after the last one. */
  async #registerSkill(run: Run): Promise<void> {
    const { env, store } = this.#parts
    const [first, ...rest] = store.skills
    if (!first) return store.unit(() => store.write(ended(run, 'done', answerOf(run), Date.now())))
    const { skill, candidate } = first
    const adopted = await env.SCOPE.getByName(run.scope).adoptSkill(JSON.stringify(skill))
    store.unit(() => {
      store.putSkills(rest)
      const progress = { ...run.progress, done: run.progress.done + 1 }
      const rejected = adopted.ok ? run.rejected : [...run.rejected, { what: candidate.decision, reason: adopted.detail }]
      const candidates = adopted.ok ? [...run.candidates, { ...candidate, id: adopted.id, version: adopted.version }] : run.candidates
      store.write({ ...run, failures: 0, candidates, rejected, found: candidates.length, progress })
    })
  }
}

const nameOf = ({ id, version }: { id: string; version: number }): string => `${id}@${version}`
