import type { Arrival } from '../contract/event-record.ts'
import type { Act, Decision as Decided, ReflexVersion } from '../contract/reflex.ts'
import type { ScopeState } from '../contract/scope.ts'
import type { Event } from '../core/event.ts'
import type { ReactionDecision, Fire, ReflexStep } from '../reflexes/decide.ts'
import type { ReflexContext } from '../reflexes/reflex-context.ts'
import type { SessionPorts } from '../skills/session/ports.ts'
import type { ScopeReport } from '../store/replicate.ts'
import type { ToolDefinition } from '../tools/define-tool.ts'
import type { FoundNotice, FoldRecord } from '../traces/entries/kind.ts'
import type { Claimed, ArrivedEvent } from './inbox/inbox.ts'
import type { Archived, Archiving } from './log/past.ts'
import type { Unit } from './storage/unit.ts'
import type { Stopped, Turn } from './turns/turn.ts'

/** Work to do after decisions commit. */
export type Next =
  | { do: 'think'; urgent?: boolean; interrupts?: boolean }
  | { do: 'run-jobs' }
  | ({ do: 'stop-turn' } & Stopped)
  | { do: 'say'; content: string; event_id: string }

/** A decision whose entries and row are written. `asks`: a feature decides on the event later. */
export type Applied = { decision: ReactionDecision; row: ArrivedEvent; fired_seq: number; arrival: Arrival | null; asks: boolean }

type DecidedEvent = { seq: number; scope: string; id: string; trace_id: string }
/** A call of a tool that undoes calls of another one. */
type Undoing = { tool: string; undoes: NonNullable<ToolDefinition['undoes']> }
/** A notice of what happened, with its time in ms. */
export type Told = FoundNotice & { at: number }

/**
 * The seam between the way of an event and what hangs on it. The loop and `apply` name no feature:
 * they call each phase in the order of the list. A feature has only the phases that it
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
  /** Follows decisions of a turn or a decision model; null if neither will decide. */
  readonly eventsDecided?: (unit: Unit, events: readonly DecidedEvent[], decision: Decided | null, outputs?: Turn['outputs']) => void
  /** Follows a turn that decided, after `eventsDecided`. */
  readonly turned?: (unit: Unit, claimed: readonly Claimed[], acts: readonly Act[]) => void
  /** True if it has to know what a turn shows of its instructions and tools. */
  readonly watches?: () => boolean
  /** Gets what a turn that decided has shown, before its decision is followed. */
  readonly taught?: (unit: Unit, shown: Turn['shown']) => void
  /** Follows the end of an action. `saves`: it spared a turn. */
  readonly actionEnded?: (unit: Unit, of: { id: string; version: number }, ended: { ok: boolean; saves: boolean }) => void
  /** Follows a call of a tool that undoes what another one did. */
  readonly undone?: (unit: Unit, undoing: Undoing, input: unknown, by: { turn_id: string | null; who: string }) => void
  /** Notes that a reflex's last action was wrong, by a turn. False without a recent action. */
  readonly overruled?: (unit: Unit, reflex_id: string, of: { turn_id: string | null; reason: string }) => boolean
  /** When it has work although nothing happens, in ms; null: never. */
  readonly due?: () => number | null
  /** Has what retention deleted. One feature does. */
  readonly archived?: Archived
  /** Takes expired rows before they are deleted. One feature does. */
  readonly archiving?: Archiving
  /** Follows the deletion of old data, in its unit. */
  readonly swept?: (unit: Unit) => void
  /** Fields of the scope's row in D1 that are the feature's. */
  readonly reports?: () => Partial<ScopeReport>
  /** Fields of the scope's state that are the feature's. */
  readonly state?: () => Partial<ScopeState>
  /** Sums over the turns so far. One feature counts them. */
  readonly turns?: () => FoldRecord['sums']
  /** Follows what has no entry of its own in the log, and what webhooks may want to know. */
  readonly told?: (unit: Unit, told: Told) => void
  /** Judges runs of skills beside the scope's own policy. */
  readonly policy?: SessionPorts['controlPlane']
}
