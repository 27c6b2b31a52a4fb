import type { Result } from '../../base/result.ts'
import type { Json, JsonFields } from '../../base/json.ts'
import type { ControlPlaneVerdict, PolicyQuestion } from '../../contract/policy.ts'
import type { SkillIndex } from '../bulletin/skill-index.ts'
import type { Probes } from '../cel/expression.ts'
import type { GateRequest } from '../gate/decision.ts'
import type { FoundSkill } from '../manifest/manifest.ts'
import type { Blackboard } from '../plan/blackboard.ts'
import type { Planned } from '../plan/compile.ts'
import type { ParseRequest } from '../plan/slots.ts'
import type { Journal, RunnerPorts, RunStatus } from '../runner/ports.ts'
import type { DecisionReport, ProposalResult } from './result.ts'

/** `running` counts the runs that have begun and not ended, lost ones included. */
export type SkillUsage = { last_run_at: number | null; running: number }

type SkillRegistryPort = {
  index(): SkillIndex
  /** Without a version, the one that a proposal of the id means. */
  find(id: string, version?: string): FoundSkill | null | Promise<FoundSkill | null>
  recentSuccess(): ReadonlySet<string>
  /** Runs of each skill, by id, that followed the last skill; absent if the host does not count. */
  transitions?(): ReadonlyMap<string, number>
  /** True if an earlier run with this key answers another one. */
  hasOutputs?(skill_id: string, idempotence_key: string): boolean
  /** From memory, in step with `runs.begin` and `runs.end`: a stale decision is made again. */
  usage(id: string): SkillUsage
}

/** The proposer. A reflex's proposals are logged like a model's: neither may give a secret. */
type ProposedBy = 'model' | 'caller' | 'reflex'

type Proposer = { name: string; key_id: string }

/** A run that waits for a person. Secret inputs are omitted and read from the blackboard later. */
export type ParkedRun = {
  proposal_id: string
  skill_id: string
  version: string
  manifest_hash: string
  inputs: JsonFields
  /** The hash of `inputs`: only the approved inputs run. */
  inputs_hash: string
  why: string
  /** Why it needs approval. */
  reason: string
  from: ProposedBy
  proposer: Proposer | null
  self_approval: boolean
  roles: string[]
  text: string
  goal_labels: string[]
  entity_types: string[]
  recent_success: boolean
  trace_id: string
  parked_at: number
  expires_at: number
}
/** `edits`: inputs that the person changed. */
export type ApprovedRun = ParkedRun & { approval_id: string; edits?: JsonFields }

/** The state to resume a run from, with secret inputs: never log it. */
export type RunRecord = {
  run_id: string
  proposal_id: string
  skill_id: string
  version: string
  manifest_hash: string
  inputs: JsonFields
  blackboard: Blackboard
  from: ProposedBy
  decision: DecisionReport
  approval_id: string | null
  trace_id: string
  started_at: number
}

/** The id of the question; one that is asked already keeps its own. */
export type Parked = Result<{ approval_id: string; asked_before: boolean }>

export type RunsPort = {
  /** Durable when it resolves; what `usage` answers counts it as soon as it is called. */
  begin(record: RunRecord): Promise<void>
  /** The end, the result as the proposer receives it, and the log entries: all or nothing. */
  end(run_id: string, end: RunEnd, told: readonly SessionEntry[]): Promise<void>
}
export type RunEnd = { skill_id: string; status: RunStatus; cancelled: boolean; ended_at: number; result: ProposalResult }

/** `chain`: the skills that this one runs in, itself last. */
export type RunIdentity = {
  run_id: string
  skill_id: string
  version: string
  trace_id: string
  chain: readonly string[]
  /** A person approved it. */
  approved: boolean
}

/**
 * The ports of the host. The session adds the end of the run, the clock, the probes and the log.
 */
export type HostRunnerPorts = Omit<RunnerPorts, 'journal' | 'ended' | 'evaluate' | 'now' | 'log'> & { journal: Journal<SessionEntry> }

/** Kinds are noun-verb. No value of a secret input is in it. */
export type SessionEntry = { kind: string; trace_id: string } & JsonFields

export type SessionPorts = {
  registry: SkillRegistryPort
  runner(run: RunIdentity): HostRunnerPorts
  runs: RunsPort
  /** The request is logged in the same transaction. */
  approvals: { park(run: ParkedRun, told: (approval_id: string) => SessionEntry): Promise<Parked> }
  /** Asks the control plane about a version that the gate would run; null without one. */
  controlPlane?(question: Pick<PolicyQuestion, 'skill_id' | 'version' | 'roles'>): Promise<ControlPlaneVerdict | null>
  tools(): readonly string[]
  /** The reason that a tool is not available, or null if the host knows none. */
  absence?(tool: string): string | null
  /** Destinations of a plan that no trusted origin names; null if all are known. */
  origins?(planned: Planned): GateRequest['origins'] | null
  /** In a replay: whether a keyword in `why` counted. Live, the request says so. */
  whyCounts?(): boolean
  probes: Probes
  /** True for a key whose words may direct. Absent in a replay, which has the recorded answers. */
  directs?(key_id: string, roles: readonly string[]): boolean
  /** Calls the model that a pinned parser names, at temperature 0, and gives its whole answer. */
  ask(request: ParseRequest, signal: AbortSignal | undefined): Promise<string>
  log(entry: SessionEntry): void
  /** Masks what is logged. Values that a manifest declares secret are masked anyway. */
  redact(value: Json): Json
  now(): number
  /** A clock that measures the gate, in fractions of ms. Without one its time is not logged. */
  clock?: () => number
  newId(): string
}

export type SkillProposal = { skill_id: string; inputs: JsonFields; why: string }

export type ProposalRequest = {
  from: ProposedBy
  /** Absent without a key. */
  proposer?: Proposer
  /** All roles of the turn's principal, including implied ones. */
  roles: readonly string[]
  /** The text for keywords and parsers. It never comes from the model of a turn. */
  text: string
  /** The text is the proposer's own `why`, so that a keyword there helps. */
  text_is_why?: true | undefined
  goal_labels?: readonly string[] | undefined
  entity_types?: readonly string[] | undefined
  /** Decides, and that is all: nothing runs or waits, and no model is asked. */
  dry_run?: boolean
  /** False: a run that needs approval is refused instead of waiting for it. */
  waits?: boolean | undefined
  /** Someone else than a model chose the skill, by a contract: no cues are asked for. */
  named?: boolean | undefined
  /** Stops the current run, which is then compensated. */
  signal?: AbortSignal | undefined
}

/**
 * `observe`: refusals of the policy are only logged, except for secrets and deprecated versions.
 */
export type PolicyMode = 'enforce' | 'observe'
