import { isJsonFields, sameJson } from '../../../base/json.ts'
import { actionsIn, type Action } from '../../../contract/action.ts'
import type { Arrival, InFlight } from '../../../contract/event-record.ts'
import type { LogEntry, EntryOf, ReflexEntry } from '../../../contract/log-entry.ts'
import { isModelAsked } from '../../../contract/model-asked.ts'
import type { ReflexReference } from '../../../contract/reflex.ts'
import type { EffectChange } from '../contract/what-if.ts'
import { historyOf, type ReactionDecision, type ChainLink } from '../../../reflexes/decide.ts'
import type { ReflexHistory } from '../../../reflexes/history.ts'
import type { ReflexContext } from '../../../reflexes/reflex-context.ts'
import { placesIn, toRanges } from '../../../traces/ranges.ts'
import type { Departures, GivenEvent } from '../given.ts'

/** An event's place in the context, and if a turn considers it: as recorded, and now. */
type Fate = { at: number; seq: number; joined: [boolean, boolean]; waits: [boolean, boolean] }
type Acts = { was: EntryOf<'reflex-fired'> | null; now: ReactionDecision['acted'] }
type WorldParts = {
  link: Departures['link']
  clean: (value: unknown) => unknown
  cannot: (at: LogEntry, kind: string, reason: string) => void
}
type Written = { after: number; key: string; value: unknown }

/** Acts that change nothing outside the decision. */
const INNER: ReadonlySet<Action['action_type']> = new Set(['set_scratch', 'ignore', 'escalate'])
/** Bounds the memory of a long range. */
const MOST_FATES = 20_000

/**
 * The world with the changes, as far as it departs from the recorded one: which actions reflexes
 * took, what they wrote to the scratch, and which events turns consider.
 */
export class World implements Departures {
  effects: EffectChange[] = []
  #parts: WorldParts
  readonly #histories = new Map<string, ReflexHistory>()
  readonly #scratch = new Map<string, Written>()
  readonly #keys = new Map<string, boolean>()
  /** The keys that the recorded world has used so far. */
  readonly #used = new Set<string>()
  readonly #fates = new Map<number, Fate>()
  /** Events whose reflex would not emit what it emitted. */
  readonly #silent = new Set<string>()

  /** Turns that would have been interrupted, and events whose turn would start at another time. */
  readonly #interrupted = new Set<string>()
  readonly #late = new Set<number>()

  constructor(parts: WorldParts) {
    this.#parts = parts
  }

  /** Begins the next part of a range. */
  enter(parts: WorldParts): void {
    this.#parts = parts
    this.effects = []
  }

  link(reference: ReflexReference, steps: readonly ReflexEntry[]): ChainLink {
    return this.#parts.link(reference, steps)
  }

  absent({ accepted, event: { event, seq } }: GivenEvent): string | null {
    if (accepted.via !== 'reflex' || !this.#silent.has(event.meta.causation_id ?? '')) return null
    this.#remember({ at: accepted.seq, seq, joined: [true, false], waits: [true, false] })
    return 'not emitted'
  }

  context(context: ReflexContext): ReflexContext {
    if (this.#scratch.size === 0) return context
    return { ...context, scratch: this.#written(context.scratch, Number.MAX_SAFE_INTEGER) }
  }

  history(who: string, recorded: ReflexHistory): ReflexHistory {
    return this.#histories.get(who) ?? recorded
  }

  /** A key is taken by the action that used it first, in either world. */
  carriedOut(id: string, key: string, steps: readonly ReflexEntry[]): boolean {
    const name = `${id} ${key}`
    const fires = steps.filter((step) => step.kind === 'reflex-fired' && step.action.idempotence_key === key) as EntryOf<'reflex-fired'>[]
    const reused = fires.some((fire) => fire.reused === true)
    // The first action under this key was still in flight then, as it is here.
    if (fires.length > 0 && !reused && this.#used.has(name)) return false
    return this.#keys.get(name) ?? reused
  }

  decided(
    judged: GivenEvent,
    decision: ReactionDecision,
    { perceived, before }: { perceived: string; before: (who: string) => ReflexHistory },
  ): void {
    const { accepted, event, steps } = judged
    const recorded = steps.find((step) => step.kind === 'reflex-fired' && step.state === 'active')
    const was = recorded?.kind === 'reflex-fired' ? recorded : null
    const now = decision.acted
    this.#keepHistories(judged, decision, before)
    const same = was !== null && now !== null && sameJson(was.action, this.#parts.clean(now.action)) && (was.reused ?? false) === now.reused
    // The span of the reflex's run, if it has one.
    const ran = steps.find((step) => now !== null && step.reflex_id === now.version.id && step.state !== 'shadow') ?? accepted
    const acts = this.#actsOf(was, now)
    if (!same || (acts.was === null) !== (acts.now === null)) this.#changeActs(ran, event.event.id, acts)
    if (!same) this.#keepScratch(judged, was?.action, now?.action)
    else for (const { key } of notesIn(was?.action)) this.#scratch.delete(key)
    this.#keepKeys(was, now)
    const at_once = { joined: perceived === 'joined', consumed: was !== null && consumes(was.action) }
    // A turn answers it, beside the context.
    const is_asked = isModelAsked(event.event)
    const waits: Fate['waits'] = [
      (at_once.joined || is_asked) && waitsAfter(was?.action),
      (decision.perceived === 'joined' || is_asked) && waitsAfter(now?.action),
    ]
    if (!waits[0] && waits[1]) this.#parts.cannot(accepted, 'turn', 'a turn would consider this event, which none did when it was recorded')
    this.#remember({
      at: accepted.seq,
      seq: event.seq,
      joined: [at_once.joined && !at_once.consumed, decision.perceived === 'joined' && !(now && consumes(now.action))],
      waits,
    })
  }

  met({ accepted: { overlap }, event: { seq } }: GivenEvent, started: EntryOf<'turn-started'> | undefined): InFlight | string | null {
    if (!overlap) return null
    const is_known = !this.#interrupted.has(overlap.turn_id) && (!started || this.moved(started) === null)
    if (is_known) return !started || this.turn(started) ? overlap : null
    this.#late.add(seq)
    return 'the turn in flight would have ended or started at another time'
  }

  arrived({ accepted, event: { seq } }: GivenEvent, { recorded, replayed }: { recorded: Arrival; replayed: Arrival }): void {
    if (recorded === replayed) return
    const was = starts(recorded)
    const now = starts(replayed)
    // A turn that is not interrupted keeps the events that a later one considered.
    if ((was && now) || recorded === 'interrupts') this.#late.add(seq)
    else if (now) this.#parts.cannot(accepted, 'turn', 'a turn would consider this event, which none did when it was recorded')
    this.#remember({ at: accepted.seq, seq, joined: [true, true], waits: [was, now] })
    if (replayed === 'interrupts' && accepted.overlap) this.#interrupted.add(accepted.overlap.turn_id)
  }

  moved({ turn_id, considered }: EntryOf<'turn-started'>): string | null {
    if (this.#interrupted.has(turn_id)) return 'the overlap policy would have interrupted the turn'
    return placesIn(considered).some((seq) => this.#late.has(seq)) ? 'the overlap policy would have started the turn at another time' : null
  }

  turn(started: EntryOf<'turn-started'>): EntryOf<'turn-started'> | null {
    const { considered, saw } = started
    const gone = new Set<number>()
    const more: number[] = []
    for (const fate of this.#fates.values()) {
      if (fate.joined[0] && !fate.joined[1]) gone.add(fate.seq)
      if (!fate.joined[0] && fate.joined[1] && fate.at < started.seq) more.push(fate.seq)
    }
    const waits = placesIn(considered).filter((seq) => this.#fates.get(seq)?.waits[1] ?? true)
    if (waits.length === 0) return null
    const scratch = this.#written(saw.scratch as Record<string, unknown>, started.seq)
    const seqs = placesIn(saw.seqs)
    const seen = [...new Set([...seqs.filter((seq) => !gone.has(seq)), ...more])].toSorted((one, other) => one - other)
    return { ...started, considered: toRanges(waits), saw: { ...saw, scratch, count: seen.length, seqs: toRanges(seen) } }
  }

  /** The acts of each world: of the actions under one key, only the first is one. */
  #actsOf(was: EntryOf<'reflex-fired'> | null, now: ReactionDecision['acted']): Acts {
    const recorded = was !== null && !was.reused && !this.#used.has(nameOf(was.reflex_id, was.action) ?? '')
    const replayed = now !== null && !now.reused && this.#keys.get(nameOf(now.version.id, now.action) ?? '') !== true
    return { was: recorded ? was : null, now: replayed ? now : null }
  }

  #changeActs(accepted: LogEntry, event_id: string, { was, now }: Acts): void {
    if (was) {
      this.#effect(was, 'vanishes', was.action)
      if (does(was.action, 'emit_event')) this.#silent.add(event_id)
    }
    if (!now) return
    const { action } = now
    this.#effect(accepted, 'appears', action)
    if (does(action, 'emit_event')) this.#parts.cannot(accepted, 'event', 'the event that the reflex would emit was not recorded')
    if (does(action, 'run_skill') || action.action_type === 'invoke_artifact')
      this.#parts.cannot(accepted, 'reflex', `what follows from ${action.action_type} was not recorded`)
  }

  #effect({ span_id }: LogEntry, change: EffectChange['change'], action: Action): void {
    if (!INNER.has(action.action_type)) this.effects.push({ span_id, change, act: action.action_type, content: this.#parts.clean(action) })
  }

  /** From the first action that differs on, a reflex has a history of its own. */
  #keepHistories({ accepted, event, steps }: GivenEvent, decision: ReactionDecision, before: (who: string) => ReflexHistory): void {
    const recorded = new Map(steps.flatMap((step) => (step.kind === 'reflex-fired' ? [[whoOf(step), step.action] as const] : [])))
    const replayed = new Map(
      decision.steps.flatMap(({ fire, state }) => (fire ? [[historyOf(fire.version, state), fire.action] as const] : [])),
    )
    for (const who of new Set([...recorded.keys(), ...replayed.keys()])) {
      const action = replayed.get(who)
      const known = this.#histories.get(who)
      if (!known && sameJson(recorded.get(who) ?? null, this.#parts.clean(action ?? null))) continue
      const history = (known ?? before(who)).copy()
      if (action) history.fired({ at: Date.parse(accepted.at), event_id: event.event.id, action })
      this.#histories.set(who, history)
    }
  }

  #keepKeys(was: EntryOf<'reflex-fired'> | null, now: ReactionDecision['acted']): void {
    const recorded = was && nameOf(was.reflex_id, was.action)
    if (recorded && !this.#keys.has(recorded) && !was?.reused) this.#keys.set(recorded, false)
    if (recorded) this.#used.add(recorded)
    const replayed = now && nameOf(now.version.id, now.action)
    if (replayed) this.#keys.set(replayed, true)
  }

  /** A key of the scratch that was written as recorded only keeps its earlier value here. */
  #keepScratch({ accepted, steps }: GivenEvent, was: Action | undefined, now: Action | undefined): void {
    const after = accepted.seq
    for (const { key } of notesIn(was)) {
      const seen = steps.map(({ context }) => context).find(isJsonFields)?.['scratch']
      const kept = this.#scratch.get(key) ?? { value: isJsonFields(seen) ? seen[key] : undefined }
      this.#scratch.set(key, { after, key, value: kept.value })
    }
    for (const { key, value } of notesIn(now)) this.#scratch.set(key, { after, key, value })
  }

  #written(scratch: Record<string, unknown>, before: number): Record<string, unknown> {
    const copy = { ...scratch }
    for (const { key, value, after } of this.#scratch.values()) {
      if (after >= before) continue
      if (value === undefined) delete copy[key]
      else copy[key] = value
    }
    return copy
  }

  #remember(fate: Fate): void {
    if (fate.joined[0] === fate.joined[1] && fate.waits[0] === fate.waits[1]) return
    this.#fates.set(fate.seq, fate)
    const [oldest] = this.#fates.keys()
    if (this.#fates.size > MOST_FATES && oldest !== undefined) this.#fates.delete(oldest)
  }
}

const does = (action: Action, type: Action['action_type']): boolean => actionsIn(action).some(({ action_type }) => action_type === type)
const notesIn = (action: Action | undefined) =>
  (action ? actionsIn(action) : []).filter(
    (one): one is Extract<Action, { action_type: 'set_scratch' }> => one.action_type === 'set_scratch',
  )
const starts = (arrival: Arrival): boolean => arrival !== 'dropped' && arrival !== 'no_trigger'
const consumes = (action: Action): boolean => action.consume === true && action.action_type !== 'escalate'
const waitsAfter = (action: Action | undefined): boolean => action === undefined || action.action_type === 'escalate'
const whoOf = ({ reflex_id, version, state }: EntryOf<'reflex-fired'>): string =>
  state === 'shadow' ? `${reflex_id}@${version}` : reflex_id
const nameOf = (id: string, { idempotence_key }: Action): string | null =>
  idempotence_key === undefined ? null : `${id} ${idempotence_key}`
