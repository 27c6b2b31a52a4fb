import type { LogEntry, EntryOf } from '../contract/log-entry.ts'

/**
 * The run of a message, as the log of its scope has it. A2A, AG-UI and the AI SDK render it, each
 * with the names of its protocol. Clients load this file, so it imports types alone.
 */

type Typed = 'turn-started' | 'turn-ended' | 'effect-started' | 'effect-ended' | 'reply-sent' | 'reflex-fired' | 'event-ended'
type Base = Pick<LogEntry, 'seq' | 'at' | 'event_ids' | 'span_id' | 'parent_id'>
export type LoggedApproval = Base & { kind: 'approval-requested'; approval_id: string; skill_id: string; version?: string; reason: string }
/** Without a version it is about calls of tools, which no end of a run follows. */
type LoggedDecision = Base & { kind: 'approval-decided'; approval_id: string; status: string; version?: string }
/** `questions`: the inputs that the gate lacks. `waits`: an approved run is decided again later. */
export type LoggedProposal = Base & {
  kind: 'skill-decided'
  proposal_id: string
  skill_id: string
  verdict: unknown
  reason: unknown
  questions: string[]
  waits: boolean
  dry_run?: unknown
}
type LoggedRunEnd = Base & { kind: 'run-ended'; status: unknown }

/** An entry about a message, a turn or a run that its sender may see, with typed fields. */
export type MessageEntry = EntryOf<Typed> | LoggedApproval | LoggedDecision | LoggedProposal | LoggedRunEnd

/** Null for an entry that a protocol of messages does not show. */
export function messageEntry(entry: LogEntry): MessageEntry | null {
  // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- the others say nothing to a sender
  switch (entry.kind) {
    case 'turn-started':
    case 'turn-ended':
    case 'effect-started':
    case 'effect-ended':
    case 'reply-sent':
    case 'reflex-fired':
    case 'event-ended':
      return entry
    case 'approval-requested':
    case 'approval-decided':
      return entry as LogEntry & (LoggedApproval | LoggedDecision)
    case 'skill-decided':
      return { ...(entry as LogEntry & LoggedProposal), ...verdictOf(entry['decision']) }
    case 'skill-applied':
    case 'skill-refused':
    case 'skill-reused':
      return { ...entry, kind: 'run-ended', status: entry.kind === 'skill-reused' ? 'reused' : (entry['status'] ?? 'refused') }
    default:
      return null
  }
}

/** Checks that pass by themselves in time. */
export const PACE: ReadonlySet<string> = new Set(['cooldown', 'concurrency'])

type LoggedStage = { status?: unknown; checks?: { check: string; passed: boolean }[] }

function verdictOf(decision: unknown): Pick<LoggedProposal, 'verdict' | 'reason' | 'questions' | 'waits'> {
  const { verdict, reason, questions, stages } = (decision ?? {}) as Record<string, unknown>
  const asked = Array.isArray(questions) ? questions.map((one: { question?: unknown } | null) => one?.question) : []
  const stopped = Array.isArray(stages) ? (stages as LoggedStage[]).filter(({ status }) => status === 'failed') : []
  const failed = stopped.flatMap(({ checks = [] }) => checks.filter(({ passed }) => !passed))
  const waits = failed.length > 0 && failed.every(({ check }) => PACE.has(check))
  return { verdict, reason, questions: asked.filter((text) => typeof text === 'string'), waits }
}

export type MessageRun = {
  replies: EntryOf<'reply-sent'>[]
  /** The approval that the run waits for. */
  approval: LoggedApproval | null
  /** The proposal that lacks inputs, if no later one replaced it. */
  question: LoggedProposal | null
  /** True from an approval until the run of its skill has ended. */
  is_approved: boolean
  /** The decisions that were made on its approvals. */
  decided: ReadonlySet<string>
}

/** The state of a run after all entries of its trace. */
export function messageRun(entries: readonly LogEntry[]): MessageRun {
  const decided = new Set<string>()
  const run: MessageRun = { replies: [], approval: null, question: null, is_approved: false, decided }
  const open = new Map<string, LoggedApproval>()
  for (const entry of entries) {
    const one = messageEntry(entry)
    if (one?.kind === 'reply-sent') run.replies.push(one)
    if (one?.kind === 'approval-requested') open.set(one.approval_id, one)
    if (one?.kind === 'approval-decided') {
      open.delete(one.approval_id)
      decided.add(one.status)
    }
    if (one?.kind === 'approval-decided' && one.status === 'approved' && one.version !== undefined) run.is_approved = true
    if (one?.kind === 'skill-decided') run.question = one.verdict === 'clarify' ? one : null
    if (one?.kind === 'run-ended') run.is_approved = false
  }
  run.approval = [...open.values()].at(-1) ?? null
  return run
}
