import { atOnce, type Steps } from '../base/steps.ts'
import { messageOf, stackOf } from '../base/error-text.ts'
import type { Action, Permission, Permitted } from '../contract/action.ts'
import type { EntryOf } from '../contract/log-entry.ts'
import { type ReflexReference, type ReflexVersion, type ReflexRun } from '../contract/reflex.ts'
import { type DecisionContext, relevant, type Filter } from '../core/decision-context.ts'
import type { Event } from '../core/event.ts'
import { isAnsweredBeside } from '../contract/model-asked.ts'
import type { ReflexHistory, Pace } from './history.ts'
import type { ShownContext } from './context/context-json.ts'
import type { RecentAction } from './reflex-context.ts'
import { runReflex, shownRun } from './run-reflex.ts'
import type { Sandbox } from './sandbox.ts'
import { countTrial, demotionOf, type Trial } from './promotion.ts'
import type { Settings } from '../contract/settings/settings.ts'
import type { Arrival, InFlight } from '../contract/event-record.ts'

const TYPES: ReadonlySet<string> = new Set(['transfer', 'offer', 'deal', 'contract', 'invocation'])

/** True for an event that the Ledger sent: one with a key has a sender. */
export const isMarketEvent = ({ type, source, meta }: Event): boolean => source === 'ledger' && meta.sender === undefined && TYPES.has(type)

/** The reflex that is called sees the call itself, with its input: not this message of it, too. */
const isCallOf = ({ id }: { id: string }, event: Event & { service?: unknown }): boolean =>
  event.type === 'invocation' && event.service === `reflex:${id}`

/** Fuel for the events of one batch: about half a second. */
export const FUEL_PER_BATCH = 100_000_000
/** The cost of a run beside its fuel: its context is copied, hashed and logged. */
export const FUEL_PER_RUN = 25_000

/** An event with its place in the order of acceptance. `text` is its JSON, as it is stored. */
export type Perceived = { seq: number; event: Event; attempts: number; text: string }
/** A link of the chain. `earlier` acts where the proof of `acting` is lacking. */
export type ChainLink = {
  reference: ReflexReference
  acting: ReflexVersion | null
  earlier?: ReflexVersion | undefined
  watching: ReflexVersion[]
  absent: { reason: 'missing' | 'suspended' | 'uncertified'; detail: string } | null
}
/** All that a decision depends on. Its functions only read. */
export type ReflexSituation = {
  now: number
  /** False if the scope's events are claimed from outside: nothing is decided here. */
  perceives: boolean
  agent: string
  filters: readonly Filter[]
  /** True for an event that the chain sees although no filter passes it. */
  reaches: (event: Event) => boolean
  /** A copy that the decision may change. */
  context: () => DecisionContext
  chain: readonly ChainLink[]
  sandbox: () => Sandbox
  /** The context that reflexes get for an event, given a reflex's recent actions. */
  show: (one: Perceived, context: DecisionContext) => (recent: RecentAction[]) => ShownContext
  history: (who: string) => ReflexHistory
  trial: (version: ReflexVersion) => Trial
  /** The reason why a version may not act on such an event now. A null action is not known yet. */
  mayAct: (version: ReflexVersion, event: Event, action: Action | null) => string | null
  permit: (
    action: Action,
    asked: { event: Event; version: ReflexVersion; scratch: Readonly<Record<string, unknown>>; now: number },
  ) => Permission
  /** True if the reflex carried out an action under this key before. */
  carriedOut: (reflex_id: string, idempotence_key: string) => boolean
  fuel: number
}

type Reason = EntryOf<'reflex-passed'>['reason']
/** A reflex that fired. `reused`: its key was carried out before, so the action does not run. */
export type Fire = { version: ReflexVersion; action: Action; permitted: Permitted; reused: boolean }
/** A reflex and one event: it fired, passed, or did not run (`ran` is null). */
export type ReflexStep = {
  id: string
  version: number | null
  hash: string | null
  state: 'active' | 'shadow' | null
  ran: { version: ReflexVersion; run: ReflexRun; refused: boolean } | null
  shown: ShownContext | null
  fire: Fire | null
  passed: { reason: Reason; error: string | null } | null
  /** The state that the limits of its reference were checked against; null if it has none. */
  pace: Pace | null
  /** The reason why its action remained in shadow mode. */
  unproven: string | null
}
/** `unperceived`: a process outside claims it. `asked`: it joins no context. */
export type ReactionDecision = {
  one: Perceived
  perceived: 'joined' | 'ignored' | 'failed' | 'unperceived' | 'asked'
  failure: { error: string; stack: string | null } | null
  steps: ReflexStep[]
  acted: Fire | null
  /** The event leaves the context with the decision. */
  consumed: boolean
}

/**
 * Decides on events in order: the agent's filters, then the chain of reflexes, whose first valid
 * action wins, and its permits. Pure. Ends early after a decision that demotes a reflex or uses a
 * licence: the caller applies the decisions and asks again.
 */
export const decide = (events: readonly Perceived[], situation: ReflexSituation): Decided => atOnce(decideInSteps(events, situation))

/** The same, with a step for each run of a reflex. */
export function* decideInSteps(events: readonly Perceived[], situation: ReflexSituation): Steps<Decided> {
  const batch = new Batch(situation)
  const decisions = [] as ReactionDecision[]
  for (const one of events) {
    decisions.push(yield* batch.decide(one))
    if (batch.ends) break
  }
  return { decisions, fuel: batch.fuel }
}

type Decided = { decisions: ReactionDecision[]; fuel: number }

const FILTER_FAILED = 'a filter of agent'
/** True for the error of an event on which a filter failed, and not the turn that considered it. */
export const isFilterFailure = (error: string): boolean => error.startsWith(FILTER_FAILED)

/** The situation, advanced by the decisions of the batch so far. */
class Batch {
  fuel: number
  ends = false
  readonly #situation: ReflexSituation
  readonly #context: DecisionContext
  readonly #histories = new Map<string, ReflexHistory>()
  readonly #trials = new Map<string, Trial>()
  readonly #keys = new Set<string>()

  constructor(situation: ReflexSituation) {
    this.#situation = situation
    this.#context = situation.context()
    this.fuel = situation.fuel
  }

  *decide(one: Perceived): Steps<ReactionDecision> {
    const decision: ReactionDecision = { one, perceived: 'joined', failure: null, steps: [], acted: null, consumed: false }
    const { perceives, agent, filters } = this.#situation
    const asked = isAnsweredBeside(one.event)
    if (asked) decision.perceived = 'asked'
    else if (!perceives) return { ...decision, perceived: 'unperceived' }
    let filtered: boolean
    try {
      filtered = !asked && !relevant(filters, one.event, this.#context)
      if (filtered && !this.#situation.reaches(one.event)) return { ...decision, perceived: 'ignored' }
    } catch (error) {
      const failure = { error: `${FILTER_FAILED} ${agent} failed: ${messageOf(error)}`, stack: stackOf(error) }
      return { ...decision, perceived: 'failed', failure }
    }
    this.#context.add(one.event)
    yield* this.#runChain(one, decision)
    // The filters keep it from the model and its context, unless a reflex hands it over.
    if (filtered && !decision.acted) decision.perceived = 'ignored'
    if (filtered && decision.acted && decision.acted.action.action_type !== 'escalate') decision.consumed = true
    if (decision.consumed || asked || decision.perceived === 'ignored') this.#context.events.pop()
    const { acted } = decision
    if (acted?.reused === false && acted.action.action_type === 'set_scratch')
      this.#context.scratch = { ...this.#context.scratch, [acted.action.key]: acted.action.value }
    return decision
  }

  *#runChain(one: Perceived, decision: ReactionDecision): Steps<void> {
    const { chain, show } = this.#situation
    if (chain.length === 0) return
    const shown = show(one, this.#context)
    for (const link of chain.filter(({ reference }) => !isCallOf(reference, one.event))) {
      for (const version of link.watching) {
        decision.steps.push(this.#run(one, version, 'shadow', shown))
        yield
      }
      if (decision.acted) continue
      decision.steps.push(...this.#tryLink(one, link, shown))
      yield
      // The last step of a link never fires in shadow mode.
      const { fire } = decision.steps.at(-1) ?? {}
      if (!fire) continue
      decision.acted = fire
      // Acts by proof are counted before the next decision.
      this.ends ||= fire.version.licences?.some(({ fires }) => fires !== null) === true || (fire.version.by_proof && fire.permitted.lane)
      decision.consumed = consumesAtOnce(fire)
    }
  }

  /** Runs the version that acts, and the earlier one where its proof is lacking. */
  #tryLink(one: Perceived, link: ChainLink, shown: (recent: RecentAction[]) => ShownContext): ReflexStep[] {
    const pace = this.#pace(link)
    const held = this.#heldBack(link)
    if (held) return [{ ...held, pace }]
    const version = link.acting as ReflexVersion
    const unproven = this.#situation.mayAct(version, one.event, null)
    const step = { ...this.#run(one, version, unproven === null ? 'active' : 'shadow', shown), pace }
    const lacks = unproven ?? step.unproven
    if (lacks === null) return [step]
    if (link.earlier) return [step, ...this.#tryLink(one, { ...link, acting: link.earlier, earlier: undefined }, shown)]
    return [step, notRun({ ...link, acting: null }, 'uncertified', lacks)]
  }

  /** The step of a link that does not run; null if it runs. */
  #heldBack(link: ChainLink): ReflexStep | null {
    if (link.absent) return notRun(link, link.absent.reason, link.absent.detail)
    if (!link.acting) return notRun(link, 'missing', 'its newest version is in shadow mode')
    const reason = this.#history(link.acting.id).heldBack(link.reference, this.#situation.now)
    return reason === null ? null : notRun(link, reason, null)
  }

  #pace({ reference: { cooldown_s, rate }, acting }: ChainLink): Pace | null {
    return acting && (cooldown_s !== undefined || rate !== undefined) ? this.#history(acting.id).pace : null
  }

  #run(
    { event }: Perceived,
    version: ReflexVersion,
    state: 'active' | 'shadow',
    show: (recent: RecentAction[]) => ShownContext,
  ): ReflexStep {
    const { now, sandbox, permit, mayAct } = this.#situation
    const step: ReflexStep = { id: version.id, version: version.version, hash: version.hash, state, ...NOTHING_RAN }
    if (this.fuel <= 0) return { ...step, passed: FUEL_USED_UP }
    const history = this.#history(historyOf(version, state))
    const shown = show(history.recent(now))
    if (!shown.fits) return { ...step, passed: TOO_LARGE }
    // The rounded fuel counts, so that a replay of the log ends a batch where this one ends.
    const run = shownRun(runReflex(sandbox(), version, shown.json), version)
    this.fuel -= run.fuel + FUEL_PER_RUN
    const { action } = run
    const permission =
      action && (history.tooManyWritten(action, now) ?? permit(action, { event, version, scratch: shown.context.scratch, now }))
    const refused = permission?.ok === false
    this.#judge(version, run)
    const ran = { version, run, refused }
    if (action && permission?.ok) {
      const unproven = state === 'active' ? mayAct(version, event, action) : null
      const as = unproven === null ? state : 'shadow'
      const reused = as === 'active' && this.#repeats(version, action, permission.lane)
      this.#history(historyOf(version, as)).fired({ at: now, event_id: event.id, action })
      return { ...step, state: as, unproven, ran, shown, fire: { version, action, permitted: permission, reused } }
    }
    const reason = run.reason === 'fired' ? 'invalid_action' : run.reason
    const passed = permission?.ok === false ? { reason: 'refused' as const, error: permission.detail } : { reason, error: run.error }
    return { ...step, ran, shown, passed }
  }

  /** True if an action under this key was carried out; the lane looks again when its turn comes. */
  #repeats({ id }: ReflexVersion, { idempotence_key }: Action, lane: boolean): boolean {
    if (idempotence_key === undefined) return false
    const name = `${id} ${idempotence_key}`
    const known = (!lane && this.#keys.has(name)) || this.#situation.carriedOut(id, idempotence_key)
    if (!lane) this.#keys.add(name)
    return known
  }

  #judge(version: ReflexVersion, run: ReflexRun): void {
    const name = `${version.id}@${version.version}`
    const trial = countTrial(this.#trials.get(name) ?? this.#situation.trial(version), run)
    this.#trials.set(name, trial)
    this.ends ||= demotionOf(trial, version.state) !== null
  }

  #history(who: string): ReflexHistory {
    const history = this.#histories.get(who) ?? this.#situation.history(who).copy()
    this.#histories.set(who, history)
    return history
  }
}

const NOTHING_RAN = { ran: null, shown: null, fire: null, passed: null, pace: null, unproven: null }

/** The step of a link whose version does not run, or may not act. */
const notRun = ({ reference, acting }: ChainLink, reason: Reason, error: string | null): ReflexStep => ({
  id: reference.id,
  version: acting?.version ?? reference.version ?? null,
  hash: acting?.hash ?? null,
  state: null,
  ...NOTHING_RAN,
  passed: { reason, error },
})

const FUEL_USED_UP = { reason: 'fuel', error: 'the events that came with this one used up what reflexes may compute at once' } as const
const TOO_LARGE = { reason: 'too_large', error: 'the event and the scratch are larger than what a reflex can be shown' } as const

/** A version in shadow mode has a history of its own. */
export const historyOf = ({ id, version }: ReflexVersion, state: ReflexStep['state']): string =>
  state === 'active' ? id : `${id}@${version}`

/** An action in the lane consumes its event once it has ended well. */
const consumesAtOnce = ({ action: { consume, action_type }, permitted, reused }: Fire): boolean =>
  consume === true && action_type !== 'escalate' && (reused || !permitted.lane)

/** Maximum number of interruptions in a row. */
export const MOST_INTERRUPTS = 10

/** The situation that events meet which arrive together. */
export type OverlapSituation = { overlap: Settings['overlap']; has_trigger: boolean; in_flight: InFlight | null }

/**
 * The overlap policy: what an event does that waits for a turn. Null if it waits for none. An event
 * that a reflex escalated waits for the turn in flight, and ignores the debounce.
 */
export function arrivalOf({ perceived, acted }: Pick<ReactionDecision, 'perceived' | 'acted'>, meeting: OverlapSituation): Arrival | null {
  const { overlap, has_trigger, in_flight } = meeting
  const urgent = acted !== null && !acted.reused && acted.action.action_type === 'escalate'
  if (perceived !== 'joined' || (acted && !urgent)) return null
  if (!has_trigger) return 'no_trigger'
  if (!in_flight) return typeof overlap === 'string' || urgent ? 'starts' : 'debounced'
  if (urgent) return 'waits'
  if (overlap === 'drop') return 'dropped'
  return overlap === 'interrupt' && !in_flight.full && in_flight.interrupts < MOST_INTERRUPTS ? 'interrupts' : 'waits'
}

/** Why no turn will consider an event; null if one may. */
export function noTurn(arrival: Arrival | null, agent: string): string | null {
  if (arrival === 'no_trigger') return `agent ${agent} has no trigger`
  return arrival === 'dropped' ? 'a turn was in flight, and the overlap policy is drop' : null
}
