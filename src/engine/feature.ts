import type { ArchiveLink } from '../base/archive-file.ts'
import type { Arrival } from '../contract/event-record.ts'
import type { LicensedGoods } from '../contract/licence.ts'
import type { Act, Decision as Decided, ReflexVersion } from '../contract/reflex.ts'
import type { ScopeChain, ScopeState } from '../contract/scope.ts'
import type { ScopeMetrics } from '../contract/scope-api.ts'
import type { EntryHead, Usage } from '../contract/log-entry.ts'
import type { AskedCall } from '../contract/held-call.ts'
import type { Settings, SettingsPatch } from '../contract/settings/settings.ts'
import type { Event } from '../core/event.ts'
import type { ReactionDecision, Fire, ReflexStep } from '../reflexes/decide.ts'
import type { ReflexContext } from '../reflexes/reflex-context.ts'
import type { Parked, ParkedRun, RunRecord, SessionEntry, SessionPorts } from '../skills/session/ports.ts'
import type { ProposalResult } from '../skills/session/result.ts'
import type { ScopeReport } from '../store/scope-rows.ts'
import type { ToolDefinition } from '../tools/define-tool.ts'
import type { FoundNotice, FoldRecord } from '../traces/entries/kind.ts'
import type { Claimed, ArrivedEvent } from './inbox/inbox.ts'
import type { SendItems } from '../kernel/outbox.ts'
import type { Archived, Archiving } from './log/past.ts'
import type { SocketCommands } from './live/socket-command.ts'
import type { VersionProofs } from './reflexes/may-act.ts'
import type { Unit } from '../kernel/unit.ts'
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
export type Undoing = { tool: string; undoes: NonNullable<ToolDefinition['undoes']> }
/** `waits`: it cannot decide now. */
type AskedOnce = { waits: boolean; decided: Decided | null; usage: Usage }
/** A notice of what happened, with its time in ms. */
export type Told = FoundNotice & { at: number }

/**
 * The seam between the way of an event and what hangs on it. The loop and `apply` name no feature:
 * they call each phase in the order of the list. A feature has only the phases that it
 * needs. All from `fired` on write in the unit of the decision: an error there fails it.
 */
export type ScopeFeature = {
  readonly name: string
  /** The reason why the scope may not use a skill now, or a reflex that acts by proof; or null. */
  readonly mayUse?: (goods: LicensedGoods, at: number) => string | null
  /** Says what lets a version act by proof. One feature does. */
  readonly proofs?: VersionProofs
  /** Decides again on an event that it took, for an audit. One feature does. */
  readonly again?: (seq: number) => Promise<AskedOnce>
  /** Ids of reflexes that the scope owns, beside those that its agent wrote. */
  readonly owns?: () => readonly string[]
  /** True for an event that the chain sees even if no filter passes it. */
  readonly reaches?: (event: Event) => boolean
  /** Tools of the scope that need the setting `market`. One feature has them. */
  readonly tools?: Readonly<Record<string, ToolDefinition>>
  /** The tools that pay, for a payment that a person approved: they ask nobody again. */
  readonly approvedTools?: Readonly<Record<string, ToolDefinition>>
  /** Sends rows of the outbox, by their topic. Safe to repeat. */
  readonly topics?: Readonly<Record<string, SendItems>>
  /** The fields of a reflex's context that are the feature's. */
  readonly context?: () => Partial<ReflexContext>
  /** True if it decides on an event that no reflex acted on, before a turn does. */
  readonly takes?: (event: Event) => boolean
  /** Counts an action that is about to be logged. Returns fields for its entry. */
  readonly fired?: (unit: Unit, fire: Fire) => object | null
  /** Follows a step of the chain, which is logged. */
  readonly ran?: (unit: Unit, step: ReflexStep, decision: ReactionDecision) => void
  /** Follows an action that is queued or about to be done. Returns the work after the commit. */
  readonly acted?: (unit: Unit, fire: Fire, applied: Applied) => Next[]
  /** Follows a decision, after its action. */
  readonly applied?: (unit: Unit, applied: Applied) => void
  /** Takes back an event whose action failed. False: a turn considers it. */
  readonly released?: (unit: Unit, released: { seq: number; event: Event }) => boolean
  /** Keeps the approval of a call that is made by somebody else, later. False: it is made here. */
  readonly keepsApproved?: (unit: Unit, call: { tool: string; input: unknown; approval_id: string }) => boolean
  /** Follows a decision that is left to a feature: `asks`. */
  readonly asked?: (unit: Unit, applied: Applied) => Next[]
  /** Follows decisions of a turn or a decision model; null if neither will decide. */
  readonly eventsDecided?: (
    unit: Unit,
    events: readonly DecidedEvent[],
    decision: Decided | null,
    made?: Pick<Turn, 'claimed' | 'inputs' | 'outputs'> & Partial<Pick<Turn, 'failed_reads' | 'seen' | 'started' | 'turn_id'>>,
  ) => void
  /** Follows a turn that decided, after `eventsDecided`. */
  readonly turned?: (unit: Unit, claimed: readonly Claimed[], acts: readonly Act[]) => void
  /** True if it has to know what a turn shows of its instructions and tools. */
  readonly watches?: () => boolean
  /** Gets what a turn that decided has shown, before its decision is followed. */
  readonly taught?: (unit: Unit, shown: Turn['shown']) => void
  /** Follows the end of an action. `saves`: it spared a turn. */
  readonly actionEnded?: (unit: Unit, of: { id: string; version: number }, ended: { ok: boolean; saves: boolean }) => void
  /** Follows the end of what let a version act: its certificate, or its place in the chain. */
  readonly lapsed?: (unit: Unit, version: ReflexVersion) => void
  /** Follows a move of a version that the scope made and D1 took. Repeated until it succeeds. */
  readonly moved?: (version: ReflexVersion) => Promise<void>
  /** Follows the start of a run of a skill, in its unit. */
  readonly runBegan?: (unit: Unit, run: RunRecord) => void
  /** Follows the end of a run, in its unit. `entry`: the end of it in the log. */
  readonly runEnded?: (unit: Unit, run: RunRecord, ended: { result: ProposalResult; entry: SessionEntry | undefined; at: number }) => void
  /** Has a run wait for a person. `record` is called in the unit that parks it. */
  readonly park?: (run: ParkedRun & { head: EntryHead }, record: (unit: Unit, approval_id: string) => void) => Promise<Parked>
  /** Asks a person for a call. Returns the id of the approval; null if it waits already. */
  readonly askCall?: (call: AskedCall, why: string, place?: { trace_id: string; span_id: string }) => Promise<string | null>
  /** Messages of sockets that are not events, by their type. */
  readonly messages?: SocketCommands
  /** Follows a change of the settings, in its unit. `revision`: its entry in the log. */
  readonly configured?: (unit: Unit, patch: SettingsPatch, now: { settings: Settings; revision: number }) => void
  /** Follows a call of a tool that undoes what another one did. */
  readonly undone?: (unit: Unit, undoing: Undoing, input: unknown, by: { turn_id: string | null; who: string }) => void
  /** Notes that a reflex's last action was wrong, by a turn. False without a recent action. */
  readonly overruled?: (unit: Unit, reflex_id: string, of: { turn_id: string | null; reason: string }) => boolean
  /** When it has work although nothing happens, in ms; null: never. */
  readonly due?: () => number | null
  /** Does the work that is due, at an alarm; false if none is. */
  readonly runDue?: () => Promise<void> | false
  /** Has what retention deleted. One feature does. */
  readonly archived?: Archived
  /** Takes expired rows before they are deleted. One feature does. */
  readonly archiving?: Archiving
  /**
   * Writes the file with the links of archived rows. `files`: the hashes of the others; `at`: the
   * time of the last entry. One feature does; null: nobody links rows.
   */
  readonly chainFile?: (
    links: readonly ArchiveLink[],
    of: { files: Readonly<Record<string, string>>; at: number },
  ) => Promise<string | null>
  /** Follows the deletion of old data, in its unit. */
  readonly swept?: (unit: Unit) => void
  /** Fields of the scope's row in D1 that are the feature's. */
  readonly reports?: () => Partial<ScopeReport>
  /**
   * Returns what goes to D1 beside outcomes that are packed there: `packs` of the feature in the
   * deployment sorts it. Nothing is left to send, unless `unanswered` is called: D1 may lack it.
   */
  readonly answers?: () => unknown
  readonly unanswered?: () => void
  /** Fields of a version's metrics that are the feature's. */
  readonly metrics?: (version: { id: string; version: number }) => Partial<ScopeMetrics['reflexes'][number]>
  /** Fields of the view of the chain that are the feature's. */
  readonly chain?: () => Partial<ScopeChain>
  /** Fields of the scope's state that are the feature's. */
  readonly state?: () => Partial<ScopeState>
  /** Senders whose events teach the scope although nobody trusts them: nothing learned acts yet. */
  readonly teachers?: () => readonly string[]
  /** Sums over the turns so far; null where none takes events. One feature counts them. */
  readonly turns?: () => FoldRecord['sums'] | null
  /** Follows what has no entry of its own in the log, and what webhooks may want to know. */
  readonly told?: (unit: Unit, told: Told) => void
  /** Judges runs of skills beside the scope's own policy. */
  readonly policy?: SessionPorts['controlPlane']
}
