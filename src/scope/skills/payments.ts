import { messageOf } from '../../base/error-text.ts'
import { isPlatformFault } from '../../base/faults.ts'
import { isJsonFields } from '../../base/json.ts'
import type { ApprovalRun } from '../../contract/control-plane/approval.ts'
import type { EntryHead } from '../../contract/log-entry.ts'
import type { Payment } from '../../contract/market/payment.ts'
import type { TraceContext } from '../../contract/scope-api.ts'
import { CutOff } from '../../tools/may-have-happened.ts'
import type { ToolDefinition } from '../../tools/define-tool.ts'
import type { Lanes } from '../effects/wiring.ts'
import { scopeHead } from '../log/spans.ts'
import type { Unit } from '../storage/unit.ts'
import { MOST_DEATHS } from '../upkeep/guard.ts'

type Parts = Pick<Lanes, 'jobs' | 'effects' | 'outbox' | 'unit' | 'settings' | 'now'>

/** A payment that waits for a person. `head`: the span from its question to the decision. */
export type HeldPayment = { payment: Payment; head: EntryHead; expires_at: number }
type Decided = { status: 'approved' | 'rejected' | 'expired'; by: string | null; reason: string | null; traceparent: string | null }

/** The span of a question, below the call of the tool that asks. */
export const paymentHead = (call?: { trace_id: string; span_id: string }): EntryHead =>
  scopeHead(call && ({ trace_id: call.trace_id, parent_id: call.span_id } satisfies TraceContext))

export function logPaymentAsked(
  unit: Unit,
  { payment, head }: Omit<HeldPayment, 'expires_at'>,
  asked: { approval_id: string; reason: string },
) {
  unit.log({ ...head, kind: 'approval-requested', ...asked, ...shown(payment) })
}

/** Logs the decision. An approved payment becomes a job. */
export function decidePayment(
  { jobs, outbox }: Pick<Parts, 'jobs' | 'outbox'>,
  unit: Unit,
  { payment, head }: HeldPayment,
  decided: Decided & { approval_id: string },
): void {
  const { approval_id, status } = decided
  if (status === 'approved') {
    jobs.add(unit, { kind: 'approved-payment', key: approval_id, payload: { ...payment, head } satisfies Approved })
    outbox.put(unit, 'approved-runs', approval_id, { ...NOTHING_DONE, status: 'running' } satisfies ApprovalRun)
  }
  unit.log({ ...head, kind: 'approval-decided', ...decided, ...shown(payment) })
}

const shown = ({ tool, to, amount }: Payment) => ({ skill_id: tool, payment: { to, amount } })

type Approved = Payment & { head: EntryHead }

/**
 * Carries out approved payments by `tools`, which have no limit for a single payment. The key is
 * that of the approval, so that a call that a crash cut off pays once. Its end is reported to D1,
 * where whoever approved it looks.
 */
export function handlePayments(parts: Parts, tools: Readonly<Record<string, ToolDefinition>>): void {
  const { jobs, outbox, unit } = parts
  const end = (key: string, run: Omit<ApprovalRun, 'ended_at'>) =>
    unit((ending) => {
      jobs.done(ending, 'approved-payment', key)
      outbox.put(ending, 'approved-runs', key, { ...run, ended_at: ending.now } satisfies ApprovalRun)
    })
  jobs.handle<Approved>('approved-payment', {
    work: 'run',
    at_once: 1,
    attempts: MOST_DEATHS,
    run: async ({ key, payload }) => end(key, await pay(parts, tools[payload.tool], { ...payload, key: `approval:${key}` })),
    giveUp: ({ key, payload: { tool } }, reason) => end(key, { ...NOTHING_DONE, ...ended(tool, 'unknown', reason) }),
  })
}

/** A refusal, such as too little money, is in the log as the end of the effect, too. */
async function pay(
  { effects, settings }: Parts,
  definition: ToolDefinition | undefined,
  { tool, input, head, key }: Approved & { key: string },
): Promise<Omit<ApprovalRun, 'ended_at'>> {
  if (!definition || !settings().market)
    return { ...NOTHING_DONE, ...ended(tool, 'refused', 'the scope does not take part in the market any more') }
  const { signal } = new AbortController()
  const call = { turn_id: null, earlier_turns: [], cause: { by: key }, head, signal, timeout_ms: settings().effect_timeout_ms }
  try {
    const output = await effects.run({ ...call, tool, definition, input, key })
    return { ...NOTHING_DONE, ...ended(tool, 'ok', null), outputs: isJsonFields(output) ? output : {} }
  } catch (error) {
    if (isPlatformFault(error)) throw error
    return { ...NOTHING_DONE, ...ended(tool, error instanceof CutOff ? 'unknown' : 'failed', messageOf(error)) }
  }
}

const ended = (tool: string, status: ApprovalRun['status'], reason: string | null) => ({ status, reason, steps: [{ tool, status }] })

const NOTHING_DONE = { run_id: null, reason: null, outputs: {}, steps: [], compensation: [], cost_usd: 0, ended_at: null }
