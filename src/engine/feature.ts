import type { Arrival } from '../contract/event-record.ts'
import type { ReflexVersion } from '../contract/reflex.ts'
import type { Event } from '../core/event.ts'
import type { ReactionDecision, Fire, ReflexStep } from '../reflexes/decide.ts'
import type { ReflexContext } from '../reflexes/reflex-context.ts'
import type { ArrivedEvent } from './inbox/inbox.ts'
import type { Unit } from './storage/unit.ts'
import type { Stopped } from './turns/turn.ts'

/** Work to do after decisions commit. */
export type Next =
  | { do: 'think'; urgent?: boolean; interrupts?: boolean }
  | { do: 'run-jobs' }
  | ({ do: 'stop-turn' } & Stopped)
  | { do: 'say'; content: string; event_id: string }

/** A decision whose entries and row are written. `asks`: a feature decides on the event later. */
export type Applied = { decision: ReactionDecision; row: ArrivedEvent; fired_seq: number; arrival: Arrival | null; asks: boolean }

/**
 * The seam between the way of an event and what hangs on it. The loop and `apply` name no feature:
 * they call each phase in the order of the wiring's list. A feature has only the phases that it
 * needs. All from `fired` on write in the unit of the decision: an error there fails it.
 */
export type ScopeFeature = {
  readonly name: string
  /** The reason why it keeps a version that acts by proof from acting now, or null. */
  readonly mayAct?: (version: ReflexVersion, at: number) => string | null
  /** The fields of a reflex's context that are the feature's. */
  readonly context?: () => Partial<ReflexContext>
  /** True if it decides on an event that no reflex acted on, before a turn does. */
  readonly takes?: (event: Event) => boolean
  /** Counts an action that is about to be logged. Returns fields for its entry. */
  readonly fired?: (unit: Unit, fire: Fire) => object | null
  /** Follows a step of the chain, which is logged. */
  readonly ran?: (unit: Unit, step: ReflexStep, decision: ReactionDecision) => void
  /** Follows an action that no earlier one makes superfluous. Returns the work after the commit. */
  readonly acted?: (unit: Unit, fire: Fire, applied: Applied) => Next[]
  /** Follows a decision, after its action. */
  readonly applied?: (unit: Unit, applied: Applied) => void
  /** Follows a decision that is left to a feature: `asks`. */
  readonly asked?: (unit: Unit, applied: Applied) => Next[]
  /** When it has work although nothing happens, in ms; null: never. */
  readonly due?: () => number | null
}
