import { backoff } from '../../base/backoff.ts'
import { checkJson } from '../../base/check-json.ts'
import { messageOf } from '../../base/error-text.ts'
import { isRetryable } from '../../base/faults.ts'
import { jsonText, sha256, type Json, type JsonFields } from '../../base/json.ts'
import { CutOff } from '../../tools/may-have-happened.ts'
import type { RunnerPorts, StepEnd, StepReason, RecordedOutput } from './ports.ts'
import { pause, withinTime, type Within } from '../../base/deadline.ts'

type StepCall = {
  ports: RunnerPorts
  tool: string
  args: JsonFields
  timeout_ms: number
  idempotence_key: string | null
  hide: (value: Json) => Json
  secrets: readonly string[]
  max_attempts: number
  backoff_ms: number
  /** Returns the rest of the plan's latency budget; null for compensation, which has no budget. */
  left_ms: (() => number) | null
  /** The same in dollars: spending more ends the step. */
  left_usd: number | null
  signal?: AbortSignal | undefined
}

/**
 * Calls a tool until it succeeds, may not be retried, or the time is up. A call that was cut off
 * may have happened, so it is retried only with a key.
 */
export async function callStep(call: StepCall): Promise<StepEnd> {
  const { ports, max_attempts, backoff_ms } = call
  const started = ports.now()
  let cost_usd = 0
  let cut_off = false
  for (let attempt = 1; ; attempt++) {
    const ended = await attemptCall(call)
    cost_usd += ended.cost_usd
    cut_off ||= ended.end.status === 'timeout'
    // A step that failed in the end may have happened in an attempt that was cut off before.
    const status = cut_off && ended.end.status === 'failed' ? 'timeout' : ended.end.status
    const end = { ...ended.end, status, cost_usd, attempts: attempt, duration_ms: ports.now() - started }
    if (!ended.again || attempt >= max_attempts || call.signal?.aborted) return end
    if (call.left_usd !== null && cost_usd > call.left_usd) return { ...end, reason: 'budget_cost' }
    const pause_ms = backoff({ first_ms: backoff_ms, longest_ms: Infinity }, attempt)
    if (call.left_ms && pause_ms >= call.left_ms()) return end
    if (!(await pause(pause_ms, { wait: (ms, stop) => ports.wait(ms, stop), signal: call.signal }))) return end
  }
}

type Attempt = { end: Pick<StepEnd, 'status' | 'reason' | 'output' | 'error'>; cost_usd: number; again: boolean }

async function attemptCall(call: StepCall): Promise<Attempt> {
  const { ports, tool, args, idempotence_key, hide, secrets, signal } = call
  const left = call.left_ms ? call.left_ms() : Infinity
  const timeout_ms = Math.max(0, Math.min(call.timeout_ms, left))
  const within = await withinTime((stop) => ports.callTool(tool, args, { signal: stop, timeout_ms, idempotence_key, hide, secrets }), {
    timeout_ms,
    wait: (ms, stop) => ports.wait(ms, stop),
    signal,
  })
  return attemptOf(within, call, left < call.timeout_ms)
}

async function attemptOf(within: Within<{ output: unknown; cost_usd: number }>, call: StepCall, over_budget: boolean): Promise<Attempt> {
  const { tool, timeout_ms, idempotence_key } = call
  switch (within.ended) {
    case 'done':
      return doneAttempt(within.value, tool)
    case 'threw':
      if (within.error instanceof CutOff) return failed('timeout', 'timeout', within.error.message, { again: idempotence_key !== null })
      return failed('failed', 'tool', messageOf(within.error), {
        again: isRetryable(within.error, { keyed: idempotence_key !== null }),
        cost_usd: costIn(within.error),
      })
    case 'timeout':
      if (over_budget) return failed('timeout', 'budget_latency', `${tool} was stopped: the latency budget is spent`)
      return failed('timeout', 'timeout', `${tool} took longer than ${timeout_ms} ms`, { again: idempotence_key !== null })
    case 'aborted':
      break
  }
  return failed('timeout', 'cancelled', `${tool} was stopped: the run was cancelled`)
}

async function doneAttempt(value: { output: unknown; cost_usd: number }, tool: string): Promise<Attempt> {
  const output = await recordOutput(value.output)
  const cost_usd = costIn(value)
  if (output === null) return failed('failed', 'output', `what ${tool} gave is not JSON`, { cost_usd })
  return { end: { status: 'ok', reason: null, output, error: null }, cost_usd, again: false }
}

function failed(
  status: 'failed' | 'timeout',
  reason: StepReason,
  error: string,
  { again = false, cost_usd = 0 }: { again?: boolean; cost_usd?: number } = {},
): Attempt {
  return { end: { status, reason, output: null, error }, cost_usd, again }
}

/** The cost of a call, by its result or its error; 0 if they hold no sensible number. */
export function costIn(value: unknown): number {
  const cost = typeof value === 'object' && value !== null && 'cost_usd' in value ? value.cost_usd : 0
  return typeof cost === 'number' && Number.isFinite(cost) && cost > 0 ? cost : 0
}

const OUTPUT_BYTES = 1024 * 1024

/** A tool's output as JSON; null if it cannot be serialized. */
async function recordOutput(output: unknown): Promise<RecordedOutput | null> {
  const text = jsonText(output)
  if (text === null) return null
  const bytes = new TextEncoder().encode(text)
  if (bytes.length > OUTPUT_BYTES) return { kind: 'too_large', sha256: await sha256(text), bytes: bytes.length }
  const value = JSON.parse(text) as Json
  return checkJson(value).ok ? { kind: 'json', value } : null
}
