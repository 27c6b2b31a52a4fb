import { sameActs as same } from './words.ts'
import type { Agreement } from '../../src/contract/agreement.ts'
import type { Episode, EpisodeAct } from '../../src/features/learning/episode.ts'
import { atOnce } from '../../src/base/steps.ts'
import {
  disputedIn,
  type Fires,
  type Foresight,
  foreseeInSteps,
  foreseenFor,
  type Lessons,
} from '../../src/features/learning/run/foresee.ts'
import { type LearnedReflexes, learnReflexes, type ReflexLearnOptions } from '../../src/features/learning/reflexes/learn.ts'
import type { LearnedReflex } from '../../src/features/learning/reflexes/write.ts'
import {
  coverageOf,
  FIRST,
  inProof,
  isWorthProof,
  LEAST_SLOW,
  nextAt,
  offerRefusal,
  SETTLINGS,
  STEP,
  WORTH,
  stratumOfAct,
  withoutForgotten,
  worthAsking,
} from '../../src/features/learning/run/policy.ts'
import { comparisonsIn } from '../../src/evidence/certificate.ts'
import { sampleContext } from '../../src/reflexes/reflex-context.ts'
import { runReflex } from '../../src/reflexes/run-reflex.ts'
import type { Sandbox } from '../../src/reflexes/sandbox.ts'
import { countAct, countAnswer, occasionOf } from '../../src/evidence/draw.ts'
import { valuesIn } from '../../src/evidence/values.ts'
import {
  auditNext,
  type Bundle,
  bundlesOf,
  driftedIn,
  driftSince,
  fire,
  type Fired,
  isActive,
  isRefuted,
  observe,
  paceOf,
  putPace,
  stateOf,
} from './bundle.ts'
import type { Item } from './inputs.ts'

/** The answer of the teacher to an event; a later attempt is a new answer. */
export type Ask = (item: Pick<Item, 'id' | 'label'>, attempt: number) => EpisodeAct[]
type Acted = Fired & { bundle: Bundle }
type Settings = { audit: number; agreement: Agreement; ask: Ask; trusted: ReadonlySet<string> }

const RECENT = 500

/** A scope that learns in slices while it serves events, with everything in memory. */
export class LearningScope {
  readonly #sandbox: Sandbox
  readonly #settings: Settings
  #episodes: Episode[] = []
  #bundles: Bundle[] = []
  #next = FIRST
  #recent: boolean[] = []
  readonly #labels = new Map<string, EpisodeAct[]>()
  readonly #settled = new Set<string>()
  readonly #audited = new Set<string>()
  readonly #lessons: Lessons = new Map()
  /** The event at which the last version for a stratum took over. */
  readonly #tookOver = new Map<string, number>()
  calls = 0
  learned: LearnedReflexes | null = null
  learnMs = 0
  readonly runs: number[] = []
  readonly log: string[] = []

  constructor(sandbox: Sandbox, settings: Settings) {
    this.#sandbox = sandbox
    this.#settings = settings
  }

  get active(): LearnedReflex[] {
    return this.#bundles.filter(isActive).flatMap(({ reflexes }) => reflexes.map(({ reflex }) => reflex))
  }

  /** Decides on an event, then learns from it. */
  async serve(item: Item, index: number): Promise<{ acts: EpisodeAct[]; by: 'reflex' | 'teacher' }> {
    this.#labels.set(item.id, item.label)
    const first = this.#fireFirst(item)
    // In doubt, the slow path decides, and the reflex is compared with it.
    const doubted = first !== null && stateOf(first.bundle, first) === 'doubted'
    const fired = doubted ? null : first
    this.#recent = [...this.#recent.slice(1 - RECENT), fired === null]
    if (fired !== null && !this.#draws(fired, item)) return { acts: fired.acts, by: 'reflex' }
    this.calls += 1
    let acts = this.#settings.ask(item, 0)
    if (first !== null) acts = this.#audit(first, { item, index, acts })
    // A version in shadow mode beside an acting one is proved where the acting one passes.
    else for (const bundle of this.#bundles) acts = this.#compare(bundle, item, acts, index)
    this.#episodes.push(episodeOf(item, acts, index))
    const slow = this.#recent.filter(Boolean).length / this.#recent.length
    if (this.#episodes.length >= this.#next && slow > LEAST_SLOW) await this.#learn(index)
    return fired === null ? { acts, by: 'teacher' } : { acts: fired.acts, by: 'reflex' }
  }

  #draws(fired: Acted, { id: event_id, saw }: Item): boolean {
    const known = paceOf(fired.bundle, fired)
    const { id: salt, risk } = fired
    const values = risk === 'inside' ? [] : valuesIn(saw.event)
    const occasion = occasionOf(known, { event_id, salt, share: this.#settings.audit, risk, is_new: false, values })
    putPace(fired.bundle, fired, countAct(known, occasion, values))
    return occasion !== null
  }

  #fireFirst(item: Item): Acted | null {
    for (const bundle of this.#bundles) {
      const fired = isActive(bundle) ? fire(this.#sandbox, bundle, item.saw, this.runs) : null
      if (fired !== null && ['proven', 'doubted'].includes(stateOf(bundle, fired))) return { ...fired, bundle }
    }
    return null
  }

  /** The majority of three answers of the teacher counts if it differs from a reflex. */
  #appeal(id: string, acts: EpisodeAct[]): EpisodeAct[] {
    this.calls += 2
    this.#settled.add(id)
    const item = { id, label: this.#labels.get(id) ?? [] }
    // Words differ from answer to answer.
    const answers = [acts, this.#settings.ask(item, 1), this.#settings.ask(item, 2)]
    return answers.find((one) => answers.filter((other) => same(one, other)).length >= 2) ?? acts
  }

  #audit(fired: Acted, { item, index, acts }: { item: Item; index: number; acts: EpisodeAct[] }): EpisodeAct[] {
    const { bundle, acts: own, id } = fired
    this.#audited.add(item.id)
    const settled = same(acts, own) ? acts : this.#appeal(item.id, acts)
    const agreed = same(settled, own)
    bundle.audits.push({ index, id, agreed })
    if (!agreed) auditNext(bundle)
    const pace = paceOf(bundle, fired)
    putPace(bundle, fired, countAnswer(pace, pace.acts, agreed))
    const changes = observe(bundle, { ...fired, kind: 'audited', index, agreed, all: this.#bundles })
    const drifted = changes.find(({ kind }) => kind === 'drifted')
    if (drifted) {
      this.log.push(`${index}: ${drifted.reason}`)
      this.#demote(bundle, driftSince(bundle, id), index)
    }
    return settled
  }

  /** Forgets the older episodes that the demoted reflexes decide, or that were decided like it. */
  #demote(bundle: Bundle, since: number, index: number): void {
    const drifted = driftedIn(bundle, since)
    this.log.push(`${index}: ${bundle.strata.join()}: drift since ${since}, it learns again`)
    const wrong = { ...bundle, reflexes: drifted }
    const fired = this.#episodes.map(({ saw }) => fire(this.#sandbox, wrong, saw))
    this.#episodes = withoutForgotten(
      this.#episodes,
      fired.map((one) => one?.acts ?? null),
      since,
    )
    this.#next = this.#episodes.length + STEP
  }

  #compare(bundle: Bundle, item: Item, acts: EpisodeAct[], index: number): EpisodeAct[] {
    const fired = fire(this.#sandbox, bundle, item.saw, this.runs)
    if (!fired || stateOf(bundle, fired) !== 'open') return acts
    const settled = same(acts, fired.acts) ? acts : this.#appeal(item.id, acts)
    const was_active = isActive(bundle)
    const changes = observe(bundle, { ...fired, kind: 'compared', index, agreed: same(settled, fired.acts), all: this.#bundles })
    for (const { kind, reason } of changes) this.log.push(`${index}: ${kind}, ${reason}`)
    if (isRefuted(bundle)) this.#bundles = this.#bundles.filter((other) => other !== bundle)
    else if (!was_active && isActive(bundle)) for (const stratum of bundle.strata) this.#tookOver.set(stratum, index)
    return settled
  }

  async #learn(index: number): Promise<void> {
    const { length } = this.#episodes
    this.#next = nextAt(length, this.#tookOver.size > 0)
    const start = performance.now()
    let learned = this.#learnOnce()
    let foresights = this.#foresee(learned)
    for (let round = 0; round < SETTLINGS && this.#settle(disputedIn(learned, foresights)); round += 1) {
      learned = this.#learnOnce()
      foresights = this.#foresee(learned)
    }
    this.learnMs = Math.max(this.learnMs, performance.now() - start)
    this.learned = learned
    const isWorth = this.#tookOver.size > 0 || isWorthProof(coverageOf(learned), length)
    const foreseenOf = (reflex: LearnedReflex) =>
      foreseenFor(reflex, {
        episodes: learned.episodes,
        foresights,
        fair: this.#options.fair ?? (() => true),
        agreement: this.#settings.agreement,
      })
    for (const bundle of await bundlesOf(learned, this.#settings.agreement, foreseenOf))
      if (isWorth || bundle.forecast >= WORTH) this.#offer(bundle, index)
  }

  #learnOnce(): LearnedReflexes {
    return learnReflexes(this.#episodes, this.#options)
  }

  #foresee({ episodes, reflexes }: LearnedReflexes): Foresight[] {
    if (reflexes.length === 0) return []
    const fires: Fires = ({ key, code }, saw) => runReflex(this.#sandbox, { hash: key, code }, { ...sampleContext, ...saw }).action
    return atOnce(foreseeInSteps(episodes, this.#options, { fires, lessons: this.#lessons }))
  }

  get #options(): ReflexLearnOptions {
    const reaches = ({ id, log_seq }: Episode, stratum: string): boolean => {
      const from = this.#tookOver.get(stratum)
      return from === undefined || (log_seq > from && !this.#audited.has(id))
    }
    return {
      trusted: this.#settings.trusted,
      agreement: this.#settings.agreement,
      fair: (episode, act) => reaches(episode, stratumOfAct(act)),
    }
  }

  #offer(bundle: Bundle, index: number): void {
    const known = this.#bundles.filter((one) => !isActive(one) && one.strata.some((stratum) => bundle.strata.includes(stratum)))
    const offer = { ...bundle, reflexes: bundle.reflexes.map(({ reflex }) => reflex) }
    const provable = new Set(known.flatMap(({ strata }) => strata))
    // As a run does: a version for a part of the decisions does not keep the rest waiting.
    const isInProof = bundle.strata.every((stratum) => provable.has(stratum))
    const compared_with = isInProof
      ? known.flatMap((one) => [...one.certificates.values()].map((certificate) => inProof(one, certificate)))
      : []
    const certificates = [...bundle.certificates.values()]
    const foreseen = certificates.every((certificate) => certificate.foreseen) ? certificates.flatMap(comparisonsIn) : null
    if (offerRefusal(offer, { known: compared_with, foreseen, agreement: this.#settings.agreement }) !== null) return
    this.#bundles = [...this.#bundles.filter((other) => !known.includes(other)), bundle]
    const by = [...new Set(bundle.reflexes.map(({ reflex }) => reflex.by))].join(' and ')
    const share = `${(bundle.forecast * 100).toFixed(1)} %`
    this.log.push(`${index}: ${bundle.strata.join()}: ${bundle.reflexes.length} by ${by} in shadow mode, would take ${share}`)
  }

  /** Decisions that may be mistakes are asked for again, each once. */
  #settle(disputed: readonly string[]): boolean {
    const open = new Set(worthAsking(disputed, this.#episodes.length, (id) => this.#settled.has(id)))
    let isChanged = false
    this.#episodes = this.#episodes.map((episode) => {
      if (!open.has(episode.id)) return episode
      const acts = this.#appeal(episode.id, episode.acts)
      isChanged ||= !same(acts, episode.acts)
      return { ...episode, acts }
    })
    return isChanged
  }
}

const episodeOf = ({ id, at, source, saw }: Item, acts: EpisodeAct[], index: number): Episode => ({
  id,
  at,
  trace_id: id,
  log_seq: index,
  source,
  saw,
  acts,
  place: { agent: 'bench', agent_version: '1' },
  teacher: { by: 'model', agent_version: '1', model: 'label', prompt_hash: '', tools_hash: '', settings_revision: 1 },
  usage: { model_calls: 1, tokens: 0, cost_usd: 0, duration_ms: 0 },
  outcome: 'ok',
})
