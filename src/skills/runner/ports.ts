import type { BlackboardChange, Blackboard } from '../plan/blackboard.ts'
import type { CelResult, ExpressionScope } from '../cel/expression.ts'
import type { Json, JsonFields } from '../../base/json.ts'
import type { CompiledPlan } from '../plan/compile.ts'

export type Phase = 'step' | 'compensation'

/** A tool's output as stored. If it is too large, only its hash is kept. */
export type RecordedOutput = { kind: 'json'; value: Json } | { kind: 'too_large'; sha256: string; bytes: number }

/**
 * `failed`: it did not happen. `timeout`: it may have. `unknown`: the process died while it ran.
 */
export type StepStatus = 'ok' | 'skipped' | 'failed' | 'timeout' | 'unknown'
export type StepReason = 'tool' | 'timeout' | 'output' | 'guard' | 'template' | 'budget_cost' | 'budget_latency' | 'cancelled' | 'lost'

export type StepEnd = {
  status: StepStatus
  reason: StepReason | null
  output: RecordedOutput | null
  error: string | null
  cost_usd: number
  attempts: number
  duration_ms: number
}

export type StepBegin = { phase: Phase; index: number; tool: string; idempotence_key: string | null; at: number }
/** `begun` is null if it ended before it began, `end` if its end was not written. */
export type JournalEntry = { phase: Phase; index: number; begun: StepBegin | null; end: StepEnd | null }

/** Durable when it resolves. Repeated writes replace. `told` is logged together with the end. */
export type Journal<Told = RunEntry> = {
  load(run_id: string): Promise<readonly JournalEntry[]>
  begin(run_id: string, begin: StepBegin): Promise<void>
  end(run_id: string, place: { phase: Phase; index: number }, end: StepEnd, told: Told): Promise<void>
}

export type ToolOptions = {
  signal: AbortSignal
  timeout_ms: number
  idempotence_key: string | null
  /** Removes the values of secret inputs from log entries about the call. */
  hide: (value: Json) => Json
  /** The secrets that the arguments may name as `{"secret": NAME}`. */
  secrets: readonly string[]
}

export type RunnerPorts = {
  journal: Journal
  /** Throws if the effect did not happen, and CutOff if it may have. Not awaited after an abort. */
  callTool(tool: string, args: JsonFields, options: ToolOptions): Promise<{ output: unknown; cost_usd: number }>
  evaluate(expression: string, scope: ExpressionScope): CelResult
  /**
   * The outputs that were last remembered under the key, or null. `not_free`: other work holds the
   * key, so that the plan must not run.
   */
  lastGood(idempotence_key: string): Promise<LastGood | { not_free: string } | null>
  remember(idempotence_key: string, outputs: JsonFields): Promise<void>
  /** The run's end and its log entry, durable as a whole before it resolves. */
  ended(result: RunResult, told: RunEntry): Promise<void>
  /** Does the work when no other of the same key is at work. */
  alone<Result>(idempotence_key: string, work: () => Promise<Result>): Promise<Result>
  now(): number
  /** Resolves after that many ms; rejects when the signal aborts. */
  wait(ms: number, signal: AbortSignal): Promise<void>
  log(entry: RunEntry): void
}

/** The outputs of an earlier run with the same key; null if they were deleted, see `detail`. */
export type LastGood = { outputs: JsonFields | null; detail: string | null }

export type RunEntry = { kind: string; run_id: string; skill_id: string; version: string } & JsonFields

export type PlanRun = {
  run_id: string
  plan: CompiledPlan
  ports: RunnerPorts
  /** Aborts the plan: the current step is cut off, and completed steps are compensated. */
  signal?: AbortSignal
}

/**
 * `reused`: nothing ran. `failed`: nothing happened. `partial_failure`: something may have happened
 * and was compensated. `unknown`: the same, and the process died during a step.
 */
export type RunStatus = 'ok' | 'reused' | 'failed' | 'partial_failure' | 'unknown'

type StepReport = { name: string; tool: string } & Omit<StepEnd, 'output'>
export type CompensationReport = { index: number; undoes: string | null; tool: string; status: StepStatus; error: string | null }

export type RunResult = {
  status: RunStatus
  /** Why it is neither `ok` nor `reused`. */
  reason: StepReason | 'result' | 'key' | null
  detail: string | null
  outputs: JsonFields
  blackboard: Blackboard
  writes: BlackboardChange[]
  cost_usd: number
  /** Working time: the time between a crash and the resumption does not count. */
  latency_ms: number
  steps: StepReport[]
  compensation: CompensationReport[]
}
