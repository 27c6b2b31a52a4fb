import type { LearnedVersion, Drift } from '../contract/learner-api.ts'
import type { Env } from '../../../env.ts'
import type { Episode, EpisodeAct } from '../episode.ts'
import type { Correction } from '../episodes/people.ts'
import type { Foreseen } from '../../../contract/certificate.ts'
import { disputedIn, type Fires, foreseeInSteps, foreseenFor, type ForeseenGrounds, type Lessons } from './foresee.ts'
import { type LearnedReflexes, learnReflexesInSteps, type ReflexLearnOptions } from '../reflexes/learn.ts'
import { trustedAmong } from '../reflexes/sources.ts'
import type { LearnedReflex } from '../reflexes/write.ts'
import { findingsOf, placeOf, type Ask, type RegisteredReflex } from './findings.ts'
import {
  coverageOf,
  type InProof,
  inProof,
  isWorthProof,
  nextAt,
  SETTLINGS,
  worthAsking,
  otherDecision,
  same,
  stratumOfAct,
  withoutForgotten,
} from './policy.ts'
import { DEFAULT_AGREEMENT } from '../../../contract/agreement.ts'
import type { Replies } from '../../../contract/words.ts'
import { answerOf, crowdIn, ended } from './ending.ts'
import type { LearnerStore, LearningRun } from './store.ts'
import { type AskedAgain, MOST_ASKED } from '../../../contract/feedback.ts'
import { isJsonFields } from '../../../base/json.ts'
import { storedReflex, storedReflexVersions } from '../../../artifacts/platform.ts'
import { isolateSandbox } from '../../../reflexes/isolate-sandbox.ts'
import { sampleContext } from '../../../reflexes/reflex-context.ts'
import { runReflex } from '../../../reflexes/run-reflex.ts'
import type { Program } from '../../../reflexes/sandbox.ts'
import { storeOf } from '../../../store/store.ts'
import { certificateIn } from '../../../store/artifacts/certificates.ts'
import type { Steps } from '../../../base/steps.ts'
import { mineInSteps, type MinedSkills } from './skills.ts'
import { actsOfAction } from '../episodes/decided.ts'

/** Events that a drifted reflex decides in one step. */
const STEP = 50

/** `learned`, `mined`: null if the run does not learn them, or not again. */
type Outcome = { episodes: Episode[]; forgotten: string[]; learned: Learned | null; mined: MinedSkills | null }
type Learned = LearnedReflexes & { foreseenOf: (reflex: LearnedReflex) => Foreseen | null }
/** The state of the step `learn`, in memory only. If the object dies, it begins again. */
type Learning = {
  key: string
  steps: AsyncGenerator<undefined, Outcome, undefined>
  proved: (RegisteredReflex & InProof)[]
  taken_over: ReadonlyMap<string, number>
}

const keyOf = ({ run_id, round }: LearningRun): string => `${run_id} ${round}`

async function beginLearning(
  run: LearningRun,
  { env, store, lessons }: { env: Env; store: LearnerStore; lessons: Lessons },
): Promise<Learning> {
  const drifted = await programsOf(run.drifted, env)
  const { proved, taken_over } = await versionsOf(store.registered, { env, run })
  const settled = run.round === 0 ? store.settled() : new Set<string>()
  const steps = learnInSteps(store.newest(run.window), { run, drifted, taken_over, settled, env, lessons })
  return { key: keyOf(run), steps, proved, taken_over }
}

type Drifted = { program: Program; since_seq: number }
type Given = {
  run: LearningRun
  env: Env
  drifted: readonly Drifted[]
  taken_over: Learning['taken_over']
  settled: ReadonlySet<string>
  lessons: Lessons
}

async function* learnInSteps(
  history: Episode[],
  { run, env, drifted, taken_over, settled, lessons }: Given,
): AsyncGenerator<undefined, Outcome, undefined> {
  let episodes = history
  for (const one of drifted) episodes = yield* withoutDrifted(episodes, one)
  const left = new Set(episodes.map(({ id }) => id))
  const forgotten = history.flatMap(({ id }) => (left.has(id) ? [] : [id]))
  const trusted = trustedAmong(episodes, run.trusted_sources)
  const fair = ({ at }: Episode, act: { kind: string; name: string } | null) => at > (taken_over.get(stratumOfAct(act)) ?? -Infinity)
  const options = {
    trusted,
    fair,
    ...(run.replies && { replies: run.replies }),
    ...(run.min_agreement !== undefined && { agreement: run.min_agreement }),
  }
  const learned = run.kinds.includes('reflex') ? yield* learnAndForesee(episodes, options, lessons) : null
  // Answers of dry turns have no outputs, which the next call of a sequence may depend on.
  const acted = episodes.filter(({ id }) => !settled.has(id))
  const mined = run.round === 0 && run.kinds.includes('skill') ? yield* mineInSteps(acted, { run, env }) : null
  return { episodes, learned, forgotten, mined }
}

/** Learns from all decisions, and compares each newer one with what the older ones taught. */
function* learnAndForesee(
  episodes: readonly Episode[],
  options: ReflexLearnOptions & Pick<ForeseenGrounds, 'fair'>,
  lessons: Lessons,
): Steps<Learned> {
  const learned = yield* learnReflexesInSteps(episodes, options)
  const { fair, agreement } = options
  const fires: Fires = ({ key, code }, saw) => runReflex(isolateSandbox(), { hash: key, code }, { ...sampleContext, ...saw }).action
  const foresights = learned.reflexes.length === 0 ? [] : yield* foreseeInSteps(learned.episodes, options, { fires, lessons })
  const foreseenOf = (reflex: LearnedReflex) => foreseenFor(reflex, { episodes: learned.episodes, foresights, fair, agreement })
  return { ...learned, disputed: disputedIn(learned, foresights), foreseenOf }
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
  registered: readonly RegisteredReflex[],
  { env, run: { scope, drifted } }: { env: Env; run: Pick<LearningRun, 'scope' | 'drifted'> },
): Promise<Pick<Learning, 'proved' | 'taken_over'>> {
  const proved: Learning['proved'] = []
  const taken_over = new Map<string, number>()
  for (const one of registered) {
    if (drifted.some(({ id, version }) => id === one.id && version === one.version)) continue
    const versions = await storedReflexVersions(storeOf(env), one.id)
    const found = versions.find(({ version }) => version === one.version)
    if (found?.state === 'shadow' && found.state_reason === null) {
      proved.push(inProof(one, await certificateIn(storeOf(env), scope, one)))
    }
    if (found?.state !== 'active') continue
    for (const stratum of one.strata) taken_over.set(stratum, Math.max(found.state_at, taken_over.get(stratum) ?? 0))
  }
  return { proved, taken_over }
}

/** With the decision itself, the majority of three counts. */
const ANSWERS = 2
/** After these, the run does without the answers. */
const MOST_FAILURES = 3
const AT_ONCE = Math.min(5, MOST_ASKED)

/**
 * Asks once about some of the events. `after` writes what is settled, and returns how many
 * decisions changed. If the object dies before that, the slow path is asked once more.
 */
async function askAgain(run: LearningRun, { env }: { env: Env }) {
  const asked = run.asks.slice(0, AT_ONCE)
  const json = await env.SCOPE.getByName(run.scope).askAgain(asked.map(({ id }) => id))
  const answers = new Map((JSON.parse(json) as AskedAgain[]).map((answer) => [answer.event_id, answer]))
  const open: Ask[] = []
  const settled: Ask[] = []
  for (const ask of asked) {
    const answer = answers.get(ask.id)
    if (answer && !answer.ok && answer.reason === 'later') {
      if (run.failures < MOST_FAILURES) throw new Error(`the slow path cannot be asked now: ${answer.detail}`)
      return { answered: { asks: [], settled: 0 }, after: () => 0 }
    }
    const acts = answer ? actsOf(answer) : null
    const all = acts ? [...ask.answers, acts] : ask.answers
    const into = acts && all.length < ANSWERS ? open : settled
    into.push({ id: ask.id, answers: all })
  }
  const asks = [...open, ...run.asks.slice(AT_ONCE)]
  const after = (store: LearnerStore): number => settled.filter((ask) => settle(ask, store, run.replies)).length
  return { answered: { asks, settled: settled.length }, after }
}

/** Null if there is no answer about the event alone. */
function actsOf(answer: AskedAgain): EpisodeAct[] | null {
  if (!answer.ok || answer.event_ids.length > 1) return null
  return answer.did.map(({ kind, name, input }) => ({
    kind,
    // The log of a turn gives replies no name.
    name: kind === 'reply' ? '' : name,
    input: isJsonFields(input) ? input : {},
    ok: true,
    cost_usd: 0,
    duration_ms: 0,
  }))
}

/** Dry turns have no outputs: an equal call had one. */
const withOutputs = (acts: readonly EpisodeAct[], before: readonly EpisodeAct[]): EpisodeAct[] =>
  acts.map((act) => {
    const known = before.find((one) => same([one], [act]))
    return known?.output === undefined ? act : { ...act, output: known.output }
  })

/** True if the decision is another one now. */
function settle({ id, answers }: Ask, store: LearnerStore, replies: Replies = 'heard'): boolean {
  const episode = store.episode(id)
  if (!episode) return false
  const other = answers.length < ANSWERS ? null : otherDecision(episode, answers, replies)
  store.settle(id, other ? withOutputs(other, episode.acts) : episode.acts)
  return other !== null
}

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
export type ReadHistory = (env: Env, of: { scope: string; after: number; lead?: number | undefined }) => AsyncIterable<Batch>

/** Steps of the learner between two pauses, some 5 ms each. */
const STEPS_AT_ONCE = 5
/** Objects that learning may kill. */
const MOST_BEGUN = 4
/** Events that a run asks about again: each takes two dry turns. */
const MOST_ASKS = 100
const MOST_REGISTERED = 200
/** Acts of which a run says what can be reached. */
const MOST_REACH = 100

type RunStepsParts = { env: Env; store: LearnerStore; history: ReadHistory }

/**
 * The steps of a run: read → learn → ask → … → register. Each writes its results in one
 * transaction; until then it may be repeated.
 */
export class RunSteps {
  readonly #parts: RunStepsParts
  #reading: { run_id: string; batches: AsyncIterator<Batch> } | null = null
  #learning: Learning | null = null
  readonly #lessons: Lessons = new Map()

  constructor(parts: RunStepsParts) {
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

  async #read(run: LearningRun): Promise<void> {
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

  #received(run: LearningRun, { episodes, corrections = [], skipped, watermark, lead }: Batch): void {
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

  async #learn(run: LearningRun): Promise<void> {
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

  async #begin(run: LearningRun): Promise<void> {
    const { store } = this.#parts
    if (run.begun >= MOST_BEGUN) {
      const answer = `Learning stopped its object ${run.begun} times.`
      return store.unit(() => store.write(ended(run, 'failed', answer, Date.now())))
    }
    store.unit(() => store.write({ ...run, begun: run.begun + 1 }))
    this.#learning = await beginLearning(run, { ...this.#parts, lessons: this.#lessons })
  }

  #learned(run: LearningRun, { episodes: used, learned, mined, forgotten }: Outcome, { proved, taken_over }: Learning): void {
    const { store } = this.#parts
    const first = used[0]
    const last = used.at(-1)
    const ends = { from: first ? placeOf(first) : null, to: last ? placeOf(last) : null }
    const policy = store.policy
    const { finds, grounds, rejected, asks } = learned
      ? this.#judged(run, learned, { proved, taken_over })
      : { finds: [], grounds: [], rejected: [], asks: [] }
    const crowd = learned && finds.length === 0 ? crowdIn(used, run) : undefined
    const { crowd: _before, ...counts } = run.episodes
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
      if (learned) store.put('policy', { ...policy, next: nextAt(policy.decisions, taken_over.size > 0) })
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
        episodes: { ...counts, used: used.length, ...ends, ...(crowd && { crowd }) },
        rejected: [...rejected, ...(store.get('unmined') ?? [])],
        ...(learned && { reach: learned.reach.slice(0, MOST_REACH) }),
      })
    })
  }

  /** The reflexes that are worth proving, and the events to ask about again. */
  #judged(run: LearningRun, learned: Learned, { proved, taken_over }: Pick<Learning, 'proved' | 'taken_over'>) {
    const { store } = this.#parts
    const worth = taken_over.size > 0 || isWorthProof(coverageOf(learned), learned.episodes.length)
    const known = store.settled()
    const disputed =
      run.round < SETTLINGS && run.asks_nothing !== true
        ? worthAsking(learned.disputed, learned.episodes.length, (id) => known.has(id) || store.episode(id)?.teacher.by === 'person')
        : []
    const asks = disputed.slice(0, MOST_ASKS - run.settled).map((id): Ask => ({ id, answers: [] }))
    return { ...findingsOf(learned, { proved, worth, agreement: run.min_agreement ?? DEFAULT_AGREEMENT }), asks }
  }

  /** Learns again if decisions changed; else registers what was found. */
  async #ask(run: LearningRun): Promise<void> {
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
  async #register(run: LearningRun): Promise<void> {
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
      const registered = store.registered.filter((one) => !replaced.has(nameOf(one)))
      const { strata, decisions, forecast } = find
      const foreseen = version.foreseen?.acts.map(({ n, k }) => ({ n, k })) ?? []
      const added = { id, version: number, strata, ...(decisions && { decisions }), forecast, run_id: run.run_id, foreseen }
      store.put('registered', [...registered, added].slice(-MOST_REGISTERED))
      const candidates = [...run.candidates, { ...find.candidate, id, version: String(number) }]
      store.write({ ...run, failures: 0, candidates, found: candidates.length, progress })
    })
  }

  /** The same for one skill. The run ends after the last one. */
  async #registerSkill(run: LearningRun): Promise<void> {
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
