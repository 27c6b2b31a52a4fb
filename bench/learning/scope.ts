import { canonicalJson, type JsonFields } from '../../src/base/json.ts'
import type { Episode, EpisodeAct } from '../../src/learning/episode.ts'
import { type Learned, learnReflexes } from '../../src/learning/reflexes/learn.ts'
import type { LearnedReflex } from '../../src/learning/reflexes/write.ts'
import { sprt } from '../../src/proof/sprt.ts'
import type { Sandbox } from '../../src/reflexes/sandbox.ts'
import { barOf, type Bundle, bundlesOf, driftedIn, driftSince, fire, type Fired, NOTHING } from './bundle.ts'
import { drawOf } from './draw.ts'
import type { Item } from './inputs.ts'

/** The answer of the teacher to an event; a later attempt is a new answer. */
export type Ask = (item: Pick<Item, 'id' | 'label'>, attempt: number) => EpisodeAct[]
type Acted = Fired & { bundle: Bundle }
type Settings = { audit: number; ask: Ask; trusted: ReadonlySet<string> }

/** Decisions before the first learning; then a quarter more, or a step that no reflex took. */
const FIRST = 200
const GROWTH = 1.25
const STEP = 75
/** A first version is proved once it would take so much, or after so many. */
const WORTH = 0.95
const LONG = { episodes: 2500, covers: 0.7 } as const
const FLAT = { covers: 0.85, slices: 3, gain: 0.015 } as const
const LEAST_FORECAST = 0.15
/** A version that would take this much more replaces one that is being proved. */
const MUCH_BETTER = 0.25
/** Learning is not worth it while the slow path decides less. */
const LEAST_SLOW = 0.02
const RECENT = 500
/** Where more is disputed, nothing was learned that could tell a mistake. */
const MOST_DISPUTED = 0.1
const SETTLINGS = 3

/** A scope that learns in slices while it serves events, with everything in memory. */
export class LearningScope {
  readonly #sandbox: Sandbox
  readonly #settings: Settings
  #episodes: Episode[] = []
  #bundles: Bundle[] = []
  #next = FIRST
  #recent: boolean[] = []
  #covers: number[] = []
  readonly #labels = new Map<string, EpisodeAct[]>()
  readonly #settled = new Set<string>()
  readonly #audited = new Set<string>()
  /** The event at which the last version for a stratum took over. */
  readonly #tookOver = new Map<string, number>()
  calls = 0
  learned: Learned | null = null
  learnMs = 0
  readonly runs: number[] = []
  readonly log: string[] = []

  constructor(sandbox: Sandbox, settings: Settings) {
    this.#sandbox = sandbox
    this.#settings = settings
  }

  get active(): LearnedReflex[] {
    return this.#bundles.filter(({ state }) => state === 'active').flatMap(({ reflexes }) => reflexes.map(({ reflex }) => reflex))
  }

  /** Decides on an event, then learns from it. */
  async serve(item: Item, index: number): Promise<{ acts: EpisodeAct[]; by: 'reflex' | 'teacher' }> {
    this.#labels.set(item.id, item.label)
    const fired = this.#fireFirst(item)
    this.#recent = [...this.#recent.slice(1 - RECENT), fired === null]
    if (fired !== null && drawOf(`audit ${item.id}`) >= this.#settings.audit) return { acts: fired.acts, by: 'reflex' }
    this.calls += 1
    let acts = this.#settings.ask(item, 0)
    if (fired !== null) acts = this.#audit(fired, { item, index, acts })
    // A version in shadow mode beside an acting one is proved where the acting one passes.
    else for (const bundle of this.#bundles.filter(({ state }) => state === 'shadow')) acts = this.#compare(bundle, item, acts, index)
    this.#episodes.push(episodeOf(item, acts, index))
    const slow = this.#recent.filter(Boolean).length / this.#recent.length
    if (this.#episodes.length >= this.#next && slow > LEAST_SLOW) await this.#learn(index)
    return fired === null ? { acts, by: 'teacher' } : { acts: fired.acts, by: 'reflex' }
  }

  #fireFirst(item: Item): Acted | null {
    for (const bundle of this.#bundles) {
      const fired = bundle.state === 'active' ? fire(this.#sandbox, bundle, item.saw, this.runs) : null
      if (fired !== null) return { ...fired, bundle }
    }
    return null
  }

  /** Where a reflex and the teacher differ, the majority of three answers of the teacher counts. */
  #appeal(id: string, acts: EpisodeAct[]): EpisodeAct[] {
    this.calls += 2
    this.#settled.add(id)
    const item = { id, label: this.#labels.get(id) ?? [] }
    const answers = [acts, this.#settings.ask(item, 1), this.#settings.ask(item, 2)]
    return answers.find((one) => answers.filter((other) => same(one, other)).length >= 2) ?? acts
  }

  #audit({ bundle, acts: own, id }: Acted, { item, index, acts }: { item: Item; index: number; acts: EpisodeAct[] }): EpisodeAct[] {
    this.#audited.add(item.id)
    const settled = same(acts, own) ? acts : this.#appeal(item.id, acts)
    bundle.audits.push({ index, id, agreed: same(settled, own) })
    const since = driftSince(bundle)
    if (since !== null) this.#demote(bundle, since, index)
    return settled
  }

  /** Forgets the older episodes that the demoted reflexes decide, or that were decided like it. */
  #demote(bundle: Bundle, since: number, index: number): void {
    const drifted = driftedIn(bundle, since)
    const audits = bundle.audits.filter((audit) => audit.index >= since).length
    this.log.push(`${index}: ${bundle.stratum}: drift within ${audits} audits, ${drifted.length} reflexes back to shadow mode`)
    const wrong = { ...bundle, reflexes: drifted }
    const fired = this.#episodes.map(({ saw }) => fire(this.#sandbox, wrong, saw))
    const forgotten = new Set(fired.flatMap((one) => (one === null ? [] : [keyOf(one.acts)])))
    this.#episodes = this.#episodes.filter(
      ({ log_seq, acts }, at) => log_seq >= since || (fired[at] === null && !forgotten.has(keyOf(acts))),
    )
    bundle.reflexes = bundle.reflexes.filter((reflex) => !drifted.includes(reflex))
    bundle.audits = []
    this.#bundles = this.#bundles.filter(({ reflexes }) => reflexes.length > 0)
    this.#next = this.#episodes.length + STEP
  }

  #compare(bundle: Bundle, item: Item, acts: EpisodeAct[], index: number): EpisodeAct[] {
    const own = fire(this.#sandbox, bundle, item.saw, this.runs)?.acts
    if (!own) return acts
    const settled = same(acts, own) ? acts : this.#appeal(item.id, acts)
    if (same(settled, own)) bundle.agreed += 1
    else bundle.disagreed += 1
    const { verdict } = sprt(barOf(bundle), bundle)
    if (verdict === 'open') return settled
    this.log.push(`${index}: ${bundle.stratum}: ${verdict}, ${bundle.agreed} of ${bundle.agreed + bundle.disagreed} agreed`)
    if (verdict === 'refuted') this.#bundles = this.#bundles.filter((other) => other !== bundle)
    else {
      bundle.state = 'active'
      this.#tookOver.set(bundle.stratum, index)
    }
    return settled
  }

  async #learn(index: number): Promise<void> {
    const { length } = this.#episodes
    this.#next = this.#tookOver.size === 0 ? Math.ceil(length * GROWTH) : length + STEP
    const start = performance.now()
    let learned = this.#learnOnce()
    for (let round = 0; round < SETTLINGS && this.#settle(learned.disputed); round += 1) learned = this.#learnOnce()
    this.learnMs = Math.max(this.learnMs, performance.now() - start)
    this.learned = learned
    const taken = learned.judged.reduce((sum, { held_out }) => sum + held_out.agreed, 0)
    const covers = taken / learned.judged.reduce((sum, { held_out }) => sum + held_out.n, 1)
    if (this.#tookOver.size === 0 && !this.#isWorthProof(covers)) return
    for (const bundle of await bundlesOf(learned)) this.#offer(bundle, index)
  }

  #learnOnce(): Learned {
    const reaches = ({ id, log_seq }: Episode, stratum: string): boolean => {
      const from = this.#tookOver.get(stratum)
      return from === undefined || (log_seq > from && !this.#audited.has(id))
    }
    return learnReflexes(this.#episodes, {
      trusted: this.#settings.trusted,
      fair: (episode, act) => reaches(episode, act === null ? NOTHING : `${act.kind} ${act.name}`),
    })
  }

  #isWorthProof(covers: number): boolean {
    this.#covers.push(covers)
    const earlier = this.#covers.at(-1 - FLAT.slices) ?? 0
    if (covers > FLAT.covers && earlier > FLAT.covers && covers < earlier + FLAT.gain) return true
    return covers > (this.#episodes.length < LONG.episodes ? WORTH : LONG.covers)
  }

  #offer(bundle: Bundle, index: number): void {
    const known = this.#bundles.filter(({ stratum, state }) => stratum === bundle.stratum && state === 'shadow')
    if (bundle.forecast < LEAST_FORECAST || known.some(({ forecast }) => forecast > bundle.forecast - MUCH_BETTER)) return
    this.#bundles = [...this.#bundles.filter((other) => !known.includes(other)), bundle]
    const by = [...new Set(bundle.reflexes.map(({ reflex }) => reflex.by))].join(' and ')
    const share = `${(bundle.forecast * 100).toFixed(1)} %`
    this.log.push(`${index}: ${bundle.stratum}: ${bundle.reflexes.length} by ${by} in shadow mode, would take ${share}`)
  }

  /** Decisions that may be mistakes are asked for again, each once. */
  #settle(disputed: readonly string[]): boolean {
    if (disputed.length > this.#episodes.length * MOST_DISPUTED) return false
    const open = new Set(disputed.filter((id) => !this.#settled.has(id)))
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

export const same = (one: readonly EpisodeAct[], other: readonly EpisodeAct[]): boolean => keyOf(one) === keyOf(other)
const keyOf = (acts: readonly EpisodeAct[]): string =>
  canonicalJson(acts.map(({ kind, name, input }): JsonFields => ({ kind, name, input })))
