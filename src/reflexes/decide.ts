import { messageOf, stackOf } from '../base/error-text.ts'
import type { JsonFields } from '../base/json.ts'
import type { Action } from '../contract/action.ts'
import type { LogEntry } from '../contract/log-entry.ts'
import { type ReflexReference, type ReflexVersion, type ReflexRun } from '../contract/reflex.ts'
import type { DecisionContext } from '../core/decision-context.ts'
import type { Filter } from '../core/deps.ts'
import type { Event } from '../core/event.ts'
import { relevant } from '../core/filter.ts'
import { isAsked } from '../contract/decisions/event.ts'
import type { ContextJson } from './context/context-json.ts'
import type { History, Pace } from './history.ts'
import type { RecentAction, ReflexContext } from './reflex-context.ts'
import { runReflex } from './run-reflex.ts'
import type { Sandbox } from './sandbox.ts'
import { countTrial, demotionOf, type Trial } from './promotion.ts'

/** Fuel that reflexes may use on the events of one batch: about half a second. */
export const FUEL_PER_BATCH = 100_000_000
/** The cost of a run beside its fuel: its context is copied, hashed and logged. */
const FUEL_PER_RUN = 25_000
const MOST_ARTIFACTS_PER_MINUTE = 5

/** An event with its place in the order of acceptance. `text` is its JSON, as it is stored. */
export type Perceived = { seq: number; event: Event; attempts: number; text: string }
/** One link of the chain: the version that acts, those in shadow mode, and why none acts. */
export type Link = {
  reference: ReflexReference
  acting: ReflexVersion | null
  watching: ReflexVersion[]
  absent: { reason: 'missing' | 'suspended'; detail: string } | null
}
/** Work of an action outside the scope. The gate decides on a skill when its run starts. */
export type LaneWork =
  | { kind: 'tool'; tool: string; input: unknown }
  | { kind: 'event'; event: Event }
  | { kind: 'skill'; skill_id: string; inputs: JsonFields }
/** A permitted action runs at once, in the event's own transaction, or in the effect lane. */
export type Permitted = { ok: true; lane: false } | { ok: true; lane: true; work: LaneWork }
export type Permission = Permitted | { ok: false; detail: string }
/** `fits` is false if the context is too large for the sandbox. */
export type Shown = { context: ReflexContext; json: ContextJson; hash: string; fits: boolean }

/** All that a decision depends on. Its functions only read. */
export type Situation = {
  now: number
  /** False if the scope's events are claimed from outside: nothing is decided here. */
  perceives: boolean
  agent: string
  filters: readonly Filter[]
  /** A copy that the decision may change. */
  context: () => DecisionContext
  chain: readonly Link[]
  sandbox: () => Sandbox
  /** The context that reflexes get for an event, given a reflex's recent actions. */
  show: (one: Perceived, context: DecisionContext) => (recent: RecentAction[]) => Shown
  history: (who: string) => History
  trial: (version: ReflexVersion) => Trial
  permit: (
    action: Action,
    asked: { event: Event; version: ReflexVersion; scratch: Readonly<Record<string, unknown>>; now: number },
  ) => Permission
  /** True if the reflex carried out an action under this key before. */
  carriedOut: (reflex_id: string, idempotence_key: string) => boolean
  fuel: number
}

type Reason = Extract<LogEntry, { kind: 'reflex-passed' }>['reason']
/** A reflex that fired. `reused`: its key was carried out before, so the action does not run. */
export type Fire = { version: ReflexVersion; action: Action; permitted: Permitted; reused: boolean }
/** One reflex and one event: it fired, passed, or did not run (`ran` is null). */
export type Step = {
  id: string
  version: number | null
  hash: string | null
  state: 'active' | 'shadow' | null
  ran: { version: ReflexVersion; run: ReflexRun; refused: boolean } | null
  shown: Shown | null
  fire: Fire | null
  passed: { reason: Reason; error: string | null } | null
  /** The state that the limits of its reference were checked against; null if it has none. */
  pace: Pace | null
}
/** `unperceived`: a process outside claims it. `asked`: it joins no context. */
export type Decision = {
  one: Perceived
  perceived: 'joined' | 'ignored' | 'failed' | 'unperceived' | 'asked'
  failure: { error: string; stack: string | null } | null
  steps: Step[]
  acted: Fire | null
  /** The event leaves the context with the decision. */
  consumed: boolean
}

/**
 * Decides on events in order: the agent's filters, then the chain of reflexes, whose first valid
 * action wins, and its permits. Pure. Ends early after a decision that demotes a reflex: the caller
 * applies the decisions and asks again for the rest.
 */
export function decide(events: readonly Perceived[], situation: Situation): { decisions: Decision[]; fuel: number } {
  const batch = new Batch(situation)
  const decisions: Decision[] = []
  for (const one of events) {
    decisions.push(batch.decide(one))
    if (batch.demotes) break
  }
  return { decisions, fuel: batch.fuel }
}

/** The situation, advanced by the decisions of the batch so far. */
class Batch {
  fuel: number
  demotes = false
  readonly #situation: Situation
  readonly #context: DecisionContext
  readonly #histories = new Map<string, History>()
  readonly #trials = new Map<string, Trial>()
  readonly #keys = new Set<string>()

  constructor(situation: Situation) {
    this.#situation = situation
    this.#context = situation.context()
    this.fuel = situation.fuel
  }

  decide(one: Perceived): Decision {
    const decision: Decision = { one, perceived: 'joined', failure: null, steps: [], acted: null, consumed: false }
    const { perceives, agent, filters } = this.#situation
    const asked = isAsked(one.event)
    if (asked) decision.perceived = 'asked'
    else if (!perceives) return { ...decision, perceived: 'unperceived' }
    try {
      if (!asked && !relevant(filters, one.event, this.#context)) return { ...decision, perceived: 'ignored' }
    } catch (error) {
      const failure = { error: `a filter of agent ${agent} failed: ${messageOf(error)}`, stack: stackOf(error) }
      return { ...decision, perceived: 'failed', failure }
    }
    this.#context.add(one.event)
    this.#runChain(one, decision)
    if (decision.consumed || asked) this.#context.events.pop()
    const { acted } = decision
    if (acted && !acted.reused && acted.action.action_type === 'set_scratch')
      this.#context.scratch = { ...this.#context.scratch, [acted.action.key]: acted.action.value }
    return decision
  }

  #runChain(one: Perceived, decision: Decision): void {
    const { chain, show } = this.#situation
    if (chain.length === 0) return
    const shown = show(one, this.#context)
    for (const link of chain) {
      for (const version of link.watching) decision.steps.push(this.#run(one, version, 'shadow', shown))
      if (decision.acted) continue
      const pace = this.#pace(link)
      const step = { ...(this.#heldBack(link) ?? this.#run(one, link.acting as ReflexVersion, 'active', shown)), pace }
      decision.steps.push(step)
      if (!step.fire) continue
      decision.acted = step.fire
      decision.consumed = consumesAtOnce(step.fire)
    }
  }

  /** The step of a link that does not run; null if it runs. */
  #heldBack({ reference, acting, absent }: Link): Step | null {
    const not = (reason: Reason, error: string | null): Step => ({
      id: reference.id,
      version: acting?.version ?? reference.version ?? null,
      hash: acting?.hash ?? null,
      state: null,
      ...NOTHING_RAN,
      passed: { reason, error },
    })
    if (absent) return not(absent.reason, absent.detail)
    if (!acting) return not('missing', 'its newest version is in shadow mode')
    const reason = this.#history(acting.id).heldBack(reference, this.#situation.now)
    return reason === null ? null : not(reason, null)
  }

  #pace({ reference: { cooldown_s, rate }, acting }: Link): Pace | null {
    return acting && (cooldown_s !== undefined || rate !== undefined) ? this.#history(acting.id).pace : null
  }

  #run({ event }: Perceived, version: ReflexVersion, state: 'active' | 'shadow', show: (recent: RecentAction[]) => Shown): Step {
    const { now, sandbox, permit } = this.#situation
    const step: Step = { id: version.id, version: version.version, hash: version.hash, state, ...NOTHING_RAN }
    if (this.fuel <= 0) return { ...step, passed: FUEL_USED_UP }
    const who = historyOf(version, state)
    const history = this.#history(who)
    const shown = show(history.recent(now))
    if (!shown.fits) return { ...step, passed: TOO_LARGE }
    const run = runReflex(sandbox(), version, shown.json)
    this.fuel -= run.fuel + FUEL_PER_RUN
    const { action } = run
    const { scratch } = shown.context
    const permission = action && (tooManyWritten(action, history, now) ?? permit(action, { event, version, scratch, now }))
    const refused = permission?.ok === false
    this.#judge(version, run)
    const ran = { version, run, refused }
    if (action && permission?.ok) {
      const reused = state === 'active' && this.#repeats(version, action, permission.lane)
      history.fired({ at: now, event_id: event.id, action })
      return { ...step, ran, shown, fire: { version, action, permitted: permission, reused } }
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
    this.demotes ||= demotionOf(trial, version.state) !== null
  }

  #history(who: string): History {
    const history = this.#histories.get(who) ?? this.#situation.history(who).copy()
    this.#histories.set(who, history)
    return history
  }
}

const NOTHING_RAN = { ran: null, shown: null, fire: null, passed: null, pace: null }
const FUEL_USED_UP = { reason: 'fuel', error: 'the events that came with this one used up what reflexes may compute at once' } as const
const TOO_LARGE = { reason: 'too_large', error: 'the event and the scratch are larger than what a reflex can be shown' } as const

/** A version in shadow mode has a history of its own. */
export const historyOf = ({ id, version }: ReflexVersion, state: Step['state']): string => (state === 'active' ? id : `${id}@${version}`)

/** An action in the lane consumes its event once it has ended well. */
const consumesAtOnce = ({ action, permitted, reused }: Fire): boolean =>
  action.consume === true && action.action_type !== 'escalate' && (reused || !permitted.lane)

/** Prevents a reflex that keeps writing reflexes. */
function tooManyWritten(action: Action, history: History, now: number): Permission | null {
  const written = action.action_type === 'write_artifact' ? history.lately('write_artifact', now) : 0
  return written < MOST_ARTIFACTS_PER_MINUTE ? null : { ok: false, detail: `it wrote ${written} artifacts within a minute` }
}
