import type { FoundTool } from '../../../agent/toolbox.ts'
import { messageOf } from '../../../base/error-text.ts'
import { isPlatformFault } from '../../../base/faults.ts'
import { isJsonFields } from '../../../base/json.ts'
import { editedInputs, type ApprovalRun, type ApprovalVerdict } from '../../../contract/approval.ts'
import type { EntryHead } from '../../../contract/log-entry.ts'
import type { AskedCall, Payment } from '../../../contract/held-call.ts'
import type { AnchoredCall } from '../../../contract/settings/anchors.ts'
import type { Settings } from '../../../contract/settings/settings.ts'
import type { TraceContext } from '../../../contract/scope-api.ts'
import { CutOff } from '../../../tools/may-have-happened.ts'
import type { ToolDefinition } from '../../../tools/define-tool.ts'
import type { Lanes } from '../../../engine/effects/wiring.ts'
import { scopeHead } from '../../../engine/log/spans.ts'
import type { Unit } from '../../../kernel/unit.ts'
import { MOST_DEATHS } from '../../../engine/upkeep/guard.ts'

type HeldCallsParts = Pick<Lanes, 'jobs' | 'effects' | 'toolbox' | 'outbox' | 'unit' | 'settings' | 'now' | 'features'>
type Tools = Readonly<Record<string, ToolDefinition>>

/** A call of a tool that waits for a person. `head`: the span from its question to the decision. */
export type HeldCall = AskedCall & { head: EntryHead; expires_at: number }
export const callOf = (held: AskedCall): Payment | AnchoredCall => ('payment' in held ? held.payment : held.call)
type DecidedCall = Omit<ApprovalVerdict, 'status'> & { status: 'approved' | 'rejected' | 'expired' }

/** The span of a question, below the call of the tool that asks. */
export const callHead = (call?: { trace_id: string; span_id: string }): EntryHead =>
  scopeHead(call && ({ trace_id: call.trace_id, parent_id: call.span_id } satisfies TraceContext))

export function logCallAsked(unit: Unit, held: AskedCall & { head: EntryHead }, asked: { approval_id: string; reason: string }) {
  unit.log({ ...held.head, kind: 'approval-requested', ...asked, ...shown(callOf(held)) })
}

/** Logs the decision. An approved call becomes a job. */
export function decideCall(
  { jobs, outbox, log, effects, features }: Pick<Lanes, 'jobs' | 'outbox' | 'log' | 'effects' | 'features'>,
  unit: Unit,
  held: HeldCall,
  { edits, ...decided }: DecidedCall & { approval_id: string },
): void {
  const { approval_id, status } = decided
  const { head } = held
  const call = callOf(held)
  if (status === 'approved') {
    const input = { ...call.input, ...edits }
    if (edits) effects.origins.noteEdit(editedInputs(call.input, edits))
    const kept = features.some((feature) => feature.keepsApproved?.(unit, { tool: call.tool, input, approval_id }))
    if (!kept) jobs.add(unit, { kind: 'approved-payment', key: approval_id, payload: { ...call, input, head } satisfies Approved })
    const run = kept
      ? { ...NOTHING_DONE, ...ended(call.tool, 'ok', KEPT), ended_at: unit.now }
      : { ...NOTHING_DONE, status: 'running' as const }
    outbox.put(unit, 'approved-runs', approval_id, run satisfies ApprovalRun)
  }
  const edited = edits && { edits: log.clean(editedInputs(call.input, edits), head.trace_id) }
  unit.log({ ...head, kind: 'approval-decided', ...decided, ...shown(call), ...edited })
}

const shown = (call: Payment | AnchoredCall) => ({
  skill_id: call.tool,
  ...('anchors' in call ? causesOf(call) : { payment: { to: call.to, amount: call.amount } }),
})

const KEPT = 'its caller may make this call once: it passes when it is made again'

/** Why a person is asked. */
const causesOf = ({ anchors, origins, named_by }: AnchoredCall) => ({
  ...(anchors.length > 0 && { anchors }),
  ...(origins && { origins }),
  ...(named_by && { named_by }),
})

/** The fields that a person sees beside the input. */
export function aboutOf(held: AskedCall): object {
  if ('call' in held) return causesOf(held.call)
  const { tool: _tool, input: _input, ...about } = held.payment
  return about
}

/** Equal questions are asked once, wherever their values stand. */
export function questionOf(held: object): object {
  if (!('call' in held)) return held
  const { origins: _origins, named_by: _named_by, ...call } = (held as { call: AnchoredCall }).call
  return { call }
}

type Approved = (Payment | AnchoredCall) & { head: EntryHead }

/**
 * Makes approved calls: payments by tools that ask nobody again, others with the tools of the
 * scope. The key of a payment comes from the approval, so that one that a crash cut off is made
 * once. Another tool may not know such a key: its call is not repeated if it may
 * have happened. The end is reported to D1, where whoever approved it looks.
 */
export function handleCalls(parts: HeldCallsParts): void {
  const { jobs, outbox, unit, features } = parts
  const tools = (): Tools => features.find(({ approvedTools }) => approvedTools)?.approvedTools ?? {}
  const end = (key: string, run: Omit<ApprovalRun, 'ended_at'>) =>
    unit((ending) => {
      jobs.done(ending, 'approved-payment', key)
      outbox.put(ending, 'approved-runs', key, { ...run, ended_at: ending.now } satisfies ApprovalRun)
    })
  jobs.handle<Approved>('approved-payment', {
    work: 'run',
    at_once: 1,
    attempts: MOST_DEATHS,
    run: async ({ key, payload }) => end(key, await perform(parts, tools(), { ...payload, key: `approval:${key}` })),
    giveUp: ({ key, payload: { tool } }, reason) => end(key, { ...NOTHING_DONE, ...ended(tool, 'unknown', reason) }),
  })
}

/** A refusal, such as too little money, is in the log as the end of the effect, too. */
async function perform(
  { effects, settings, toolbox }: HeldCallsParts,
  tools: Tools,
  { head, key, ...approved }: Approved & { key: string },
): Promise<Omit<ApprovalRun, 'ended_at'>> {
  const { tool, input } = approved
  if ('anchors' in approved) await toolbox.ready()
  const found = 'anchors' in approved ? toolbox.find(tool) : payingTool(tools[tool], settings())
  if (!found.ok) return { ...NOTHING_DONE, ...ended(tool, 'refused', found.detail) }
  const { definition } = found
  const { signal } = new AbortController()
  const once = 'anchors' in approved ? { turn_id: key, earlier_turns: [key] } : { turn_id: null, earlier_turns: [], key }
  const call = {
    ...once,
    cause: { by: key },
    head,
    signal,
    timeout_ms: settings().effect_timeout_ms,
    approved: true,
  }
  try {
    const output = await effects.run({ ...call, tool, definition, input })
    return { ...NOTHING_DONE, ...ended(tool, 'ok', null), outputs: isJsonFields(output) ? output : {} }
  } catch (error) {
    if (isPlatformFault(error)) throw error
    return { ...NOTHING_DONE, ...ended(tool, error instanceof CutOff ? 'unknown' : 'failed', messageOf(error)) }
  }
}

const payingTool = (definition: ToolDefinition | undefined, { market }: Settings): FoundTool =>
  definition && market ? { ok: true, definition } : { ok: false, detail: 'the scope does not take part in the market any more' }

const ended = (tool: string, status: ApprovalRun['status'], reason: string | null) => ({ status, reason, steps: [{ tool, status }] })

const NOTHING_DONE = { run_id: null, reason: null, outputs: {}, steps: [], compensation: [], cost_usd: 0, ended_at: null }
