import { isJsonFields, type JsonFields } from '../../../base/json.ts'
import type { LogEntry, SkillEntryKind } from '../../../contract/log-entry.ts'
import type { GateDecision, GateRequest } from '../../../skills/gate/decision.ts'
import type { SessionEntry } from '../../../skills/session/ports.ts'
import { runSpan, spanOf } from '../../../traces/ids.ts'
import type { Comparison } from '../report.ts'
import { isMasked } from '../../../base/secrets.ts'
import type { SkillEntry, Source } from '../source.ts'

type LoggedRequest = Omit<GateRequest, 'manifest' | 'blackboard' | 'probes' | 'recorded'>
export type RecordedDecision = SkillEntry & {
  request: LoggedRequest
  decision: GateDecision
  why: string
  proposal_id: string
  manifest_hash: string
}

/** The report's names for the entries of a session. */
const KINDS: Partial<Record<SkillEntryKind, string>> = {
  'bulletin-built': 'bulletin',
  'skill-decided': 'gate',
  'skill-refused': 'skill',
  'skill-slots-parsed': 'slots',
  'skill-guard-evaluated': 'step',
  'skill-step-ended': 'step',
  'skill-compensation-ended': 'step',
  'skill-started': 'plan',
  'skill-resumed': 'plan',
  'skill-reused': 'plan',
  'skill-applied': 'plan',
  'blackboard-changed': 'plan',
  'approval-requested': 'approval',
}

/** The entries of one session, which a replayed session writes again. */
export class SessionRecord {
  readonly owner: string
  readonly seed: SkillEntry
  readonly entries: readonly SkillEntry[]
  readonly #left: SkillEntry[]
  /** The decision that the replay made last. */
  #decided: RecordedDecision | null = null
  /** True once a replay has used it. */
  used = false

  constructor(seed: SkillEntry, entries: readonly SkillEntry[]) {
    this.owner = seed.parent_id ?? ''
    this.seed = seed
    this.entries = entries
    this.#left = [...entries]
  }

  get left(): readonly SkillEntry[] {
    return this.#left
  }

  next(...kinds: SkillEntryKind[]): SkillEntry | undefined {
    return this.#left.find(({ kind }) => kinds.includes(kind))
  }

  /** The decision that comes next, from whose facts it is made again; else the last one. */
  decided(skill_id?: string): RecordedDecision | null {
    const next = this.next('skill-decided')
    return next && (skill_id === undefined || next['skill_id'] === skill_id) ? (next as RecordedDecision) : this.#decided
  }

  /** As `decided`; the last one as long as its run has not begun, when the session looks again. */
  get deciding(): RecordedDecision | null {
    const next = this.next('skill-decided', 'skill-started', 'skill-reused', 'skill-applied')
    return next === undefined || next.kind === 'skill-decided' ? this.decided() : (this.#decided ?? this.decided())
  }

  /** The id that the session drew next. */
  nextId(): string {
    for (const { run_id, proposal_id } of this.#left) {
      if (typeof run_id === 'string') return run_id
      if (typeof proposal_id === 'string') return proposal_id
    }
    return 'replayed'
  }

  /** Compares an entry that the replay wrote with the recorded one. Steps come in their order. */
  compare(written: SessionEntry, comparison: Comparison): void {
    const { kind } = written
    const index = this.#left.findIndex(
      (entry) => entry.kind === kind && entry['index'] === written['index'] && entry['skill_id'] === written['skill_id'],
    )
    const due = this.#left.find((entry) => entry.kind === kind && entry['run_id'] === written['run_id'])
    const [entry] = index === -1 ? [] : this.#left.splice(index, 1)
    if (entry && due && due['index'] !== entry['index'])
      comparison.diverge(entry, 'step', { path: '/index', recorded: due['index'], replayed: entry['index'] })
    const pair = { recorded: entry ? fieldsOf(entry) : null, replayed: fieldsOf(written) }
    if (entry?.kind === 'skill-decided') this.#decided = entry as RecordedDecision
    if (this.#masked || isMasked(pair.recorded))
      comparison.compareMasked(entry ?? this.seed, KINDS[kind as SkillEntryKind] ?? 'skill', pair)
    else comparison.compare(entry ?? this.seed, KINDS[kind as SkillEntryKind] ?? 'skill', pair)
  }

  /** Reports the entries that the replay did not write. */
  compareRest(comparison: Comparison): void {
    for (const entry of this.#left.splice(0))
      if (!comparison.covered.has(entry))
        comparison.compare(entry, KINDS[entry.kind] ?? 'skill', { recorded: fieldsOf(entry), replayed: null })
  }

  get #masked(): boolean {
    return isMasked(this.seed['blackboard']) || this.entries.some(({ request }) => isJsonFields(request) && isMasked(request['inputs']))
  }
}

/** The head of an entry, and what differs each time. */
const HEAD = new Set(['seq', 'at', 'trace_id', 'span_id', 'parent_id', 'event_ids', 'event_count', 'duration_ms', 'clock', 'manifests'])

const fieldsOf = (entry: object): JsonFields => Object.fromEntries(Object.entries(entry).filter(([name]) => !HEAD.has(name)))

/** All sessions of a recording, in the order in which they began. */
export function sessionsIn(source: Source): SessionRecord[] {
  const entries = source.recording.entries.filter(isSessionEntry)
  const owners = ownersOf(entries)
  const sessions: { seed: SkillEntry; own: SkillEntry[] }[] = []
  const newest = new Map<string | null, SkillEntry[]>()
  for (const entry of entries) {
    if (entry.kind !== 'blackboard-seeded') {
      newest.get(owners(entry))?.push(entry)
      continue
    }
    const own: SkillEntry[] = []
    newest.set(entry.parent_id, own)
    sessions.push({ seed: entry, own })
  }
  return sessions.map(({ seed, own }) => new SessionRecord(seed, own))
}

const isSessionEntry = (entry: LogEntry): entry is SkillEntry => entry.kind === 'blackboard-seeded' || entry.kind in KINDS

/** The owner of a session is the span above its proposals and runs. */
function ownersOf(entries: readonly SkillEntry[]): (entry: SkillEntry) => string | null {
  const above = new Map<string, string | null>()
  for (const { run_id, span_id, parent_id, proposal_id, kind } of entries) {
    if (typeof run_id === 'string' && span_id === runSpan(run_id)) above.set(span_id, parent_id)
    else if (typeof proposal_id === 'string' && kind !== 'approval-requested') above.set(spanOf(`proposal:${proposal_id}`), parent_id)
  }
  return ({ run_id, proposal_id, parent_id }) => {
    const at = typeof run_id === 'string' ? runSpan(run_id) : typeof proposal_id === 'string' ? spanOf(`proposal:${proposal_id}`) : null
    return at === null ? parent_id : (above.get(at) ?? parent_id)
  }
}
