import type { Computing } from '../../base/computing.ts'
import type { AgentRegistry } from '../../agent/registry.ts'
import { maskOnce, redactor, type TextMask } from '../../traces/redact.ts'
import type { EntryKind, LogEntry, SkillEntryKind, EntryOf } from '../../contract/log-entry.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import type { Sandbox } from '../../reflexes/sandbox.ts'
import type { RecordedEvent, Recording } from './recording.ts'
import { Unrecorded } from './report.ts'

/** The code of the deployment that replays. */
export type ReplayHost = {
  agents: AgentRegistry
  sandbox: () => Sandbox
  /** Rests between the parts of a replay. */
  computing: Computing
  /** Masks what the log masks, so that a replayed value compares with a recorded one. */
  cleaner: (settings: Settings) => (value: unknown) => unknown
}

/** Masks as the log does: fields by their names, and secrets of the deployment by their values. */
export const cleanerOf =
  (hide: (value: unknown) => unknown, mask: TextMask) =>
  ({ redact }: Settings): ((value: unknown) => unknown) => {
    const masked = redactor(redact, maskOnce(mask))
    return (value) => hide(masked(value))
  }

export type EffectEnded = EntryOf<'effect-ended'>
export type SkillEntry = EntryOf<SkillEntryKind>

/** Dry turns changed nothing, so that a replay leaves out them and what they asked and read. */
function withoutDryTurns(entries: readonly LogEntry[]): LogEntry[] {
  const dry = new Set(entries.flatMap(({ kind, span_id }) => (kind === 'dry-turn-ended' ? [span_id] : [])))
  if (dry.size === 0) return [...entries]
  // A span is logged after that which it is in, except for the dry turn's own.
  for (const { span_id, parent_id } of entries) if (parent_id !== null && dry.has(parent_id)) dry.add(span_id)
  return entries.filter(({ span_id }) => !dry.has(span_id))
}

/** A recording by what its entries name. */
export class Source {
  readonly scope: string
  readonly recording: Recording
  readonly #events: ReadonlyMap<string, RecordedEvent>
  readonly #by_seq: ReadonlyMap<number, RecordedEvent>
  /** Entries by their kinds, which are asked for at each decision. */
  readonly #of_kinds = new Map<string, readonly LogEntry[]>()
  #inputs: Map<string, { value: unknown }> | null = null

  constructor(given: Recording) {
    const recording = { ...given, entries: withoutDryTurns(given.entries) }
    this.recording = recording
    this.scope = recording.scope
    this.#events = new Map(recording.events.map((one) => [one.event.id, one]))
    this.#by_seq = new Map(recording.events.map((one) => [one.seq, one]))
  }

  entriesOf<Kind extends EntryKind>(...kinds: Kind[]): readonly EntryOf<Kind>[] {
    const key = kinds.join()
    const found = this.#of_kinds.get(key) ?? this.recording.entries.filter(({ kind }) => kinds.some((one) => one === kind))
    this.#of_kinds.set(key, found)
    return found as readonly EntryOf<Kind>[]
  }

  /** Entries of skill sessions, which define their fields. */
  skillEntries(kind: SkillEntryKind): SkillEntry[] {
    return this.recording.entries.filter((entry): entry is SkillEntry => entry.kind === kind)
  }

  eventOf(id: string): RecordedEvent | undefined {
    return this.#events.get(id)
  }

  eventAt(seq: number): RecordedEvent | undefined {
    return this.#by_seq.get(seq)
  }

  /**
   * The input of a call. One that was answered by its idempotence key has no start: its end
   * has the input. Null if the log has none, as old logs of such calls.
   */
  inputOf({ span_id, input }: EffectEnded): { value: unknown } | null {
    this.#inputs ??= new Map(this.entriesOf('effect-started').map((started) => [started.span_id, { value: started.input }]))
    return this.#inputs.get(span_id) ?? (input === undefined ? null : { value: input })
  }

  part(hash: string): unknown {
    const value = this.recording.parts[hash]
    if (value === undefined) throw new Unrecorded(`the part ${hash} is not in the recording`)
    return value
  }
}
