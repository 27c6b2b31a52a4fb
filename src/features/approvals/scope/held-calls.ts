import { z } from 'zod'
import type { FoundTool } from '../../../agent/toolbox.ts'
import { messageOf } from '../../../base/error-text.ts'
import { isPlatformFault } from '../../../base/faults.ts'
import { byteLength, isJsonFields, type JsonFields } from '../../../base/json.ts'
import { limits } from '../../../base/limits.ts'
import { editedInputs, type ApprovalRun, type ApprovalVerdict, type EditedInputs } from '../../../contract/approval.ts'
import type { EntryHead } from '../../../contract/log-entry.ts'
import { callsOf, type AskedCall, type EditedCall, type Payment } from '../../../contract/held-call.ts'
import type { AnchoredCall } from '../../../contract/settings/anchors.ts'
import type { Settings } from '../../../contract/settings/settings.ts'
import type { TraceContext } from '../../../contract/scope-api.ts'
import { CutOff } from '../../../tools/may-have-happened.ts'
import type { ToolDefinition } from '../../../tools/define-tool.ts'
import { EditRefused } from '../../../engine/effects/effect-lane.ts'
import type { Lanes } from '../../../engine/effects/wiring.ts'
import { scopeHead } from '../../../engine/log/spans.ts'
import type { Unit } from '../../../kernel/unit.ts'
import { MOST_DEATHS } from '../../../engine/upkeep/guard.ts'
import { withoutTaken } from './edits.ts'

type HeldCallsParts = Pick<Lanes, 'log' | 'jobs' | 'effects' | 'toolbox' | 'outbox' | 'unit' | 'settings' | 'features'>
type Tools = Readonly<Record<string, ToolDefinition>>
type CallEnd = Omit<ApprovalRun, 'ended_at'>

type OneCall = Payment | AnchoredCall

/** Calls of tools that wait for a person. `head`: the span from their question to the decision. */
export type HeldCall = AskedCall & { head: EntryHead; expires_at: number }
type DecidedCall = Omit<ApprovalVerdict, 'status'> & { status: 'approved' | 'rejected' | 'expired' }

/** The span of a question, below the call of the tool that asks. */
export const callHead = (call?: { trace_id: string; span_id: string }): EntryHead =>
  scopeHead(call && ({ trace_id: call.trace_id, parent_id: call.span_id } satisfies TraceContext))

export function logCallAsked(unit: Unit, held: AskedCall & { head: EntryHead }, asked: { approval_id: string; reason: string }) {
  unit.log({ ...held.head, kind: 'approval-requested', ...asked, ...shown(held) })
}

/** Logs the decision. Approved calls become a job. */
export function decideCall(
  { jobs, outbox, log, effects, features }: Pick<Lanes, 'jobs' | 'outbox' | 'log' | 'effects' | 'features'>,
  unit: Unit,
  held: HeldCall,
  { edits, ...decided }: DecidedCall & { approval_id: string },
): void {
  const { approval_id, status } = decided
  const { head } = held
  const changed = edits && changesOf(held, edits)
  if (status === 'approved') {
    if (changed) effects.origins.noteEdit(changed)
    const calls = withEdits(held, edits).map((one): Numbered => {
      const kept = features.some((feature) => feature.keepsApproved?.(unit, { ...one, ...callersInput(one), approval_id }))
      return kept ? { ...one, kept } : one
    })
    const are_kept = calls.every(({ kept }) => kept)
    if (!are_kept) jobs.add(unit, { kind: 'approved-payment', key: approval_id, payload: { calls, head } satisfies Approved })
    const run = are_kept ? { ...together(calls.map(keptRun)), ended_at: unit.now } : { ...NOTHING_DONE, status: 'running' as const }
    outbox.put(unit, 'approved-runs', approval_id, run satisfies ApprovalRun)
  }
  const edited = changed && { edits: log.clean(changed, head.trace_id) }
  unit.log({ ...head, kind: 'approval-decided', ...decided, ...shown(held), ...edited })
}

const editOf = (edits: JsonFields, index: number): unknown => edits[String(index + 1)]

/** The calls as they are made: of several, without those that a person left out. */
function withEdits(held: AskedCall, edits: JsonFields = {}): Numbered[] {
  const several = 'calls' in held
  return callsOf(held).flatMap((call, index) => {
    const of = several ? editOf(edits, index) : edits
    if (of === null) return []
    if (!isJsonFields(of) || !('anchors' in call)) return [{ ...call, number: index + 1 }]
    const edited = { asked: call, edits: editedInputs(call.input, of) }
    return [{ ...call, number: index + 1, input: { ...call.input, ...of }, ...(Object.keys(of).length > 0 && { edited }) }]
  })
}

const takenIn = ({ edits }: EditedCall) => Object.fromEntries(Object.entries(edits).map(([name, { to }]) => [name, to]))

/** A caller's own schema judges the input of its tool: null takes any argument away. */
const callersInput = ({ input, edited }: Numbered) => edited && { input: withoutTaken({ input: z.unknown() }, input, takenIn(edited)) }

/** The changes that a person made: each argument of a call, such as `2.to`, or a call left out. */
function changesOf(held: AskedCall, edits: JsonFields): EditedInputs {
  const calls = callsOf(held)
  if (!('calls' in held)) return editedInputs(calls[0]?.input ?? {}, edits)
  return Object.assign(
    {},
    ...calls.map(({ input }, index): EditedInputs => {
      const of = editOf(edits, index)
      if (of === null) return { [index + 1]: { from: input, to: null } }
      const changed = Object.entries(isJsonFields(of) ? editedInputs(input, of) : {})
      return Object.fromEntries(changed.map(([name, change]) => [`${index + 1}.${name}`, change]))
    }),
  ) as EditedInputs
}

/** Tools of a question, each once. */
export const toolsOf = (held: AskedCall): string => [...new Set(callsOf(held).map(({ tool }) => tool))].join(', ')

const shown = (held: AskedCall) => ({
  skill_id: toolsOf(held),
  ...('payment' in held && { payment: { to: held.payment.to, amount: held.payment.amount } }),
  ...('call' in held && causesOf(held.call)),
  ...('calls' in held && { calls: held.calls.map((call) => ({ tool: call.tool, ...causesOf(call) })) }),
})

const keptRun = ({ tool, number }: Numbered): NumberedRun => ({ number, ...NOTHING_DONE, ...ended(tool, 'ok', KEPT) })
const KEPT = 'its caller may make this call once: it passes when it is made again'

/** Why a person is asked. */
const causesOf = ({ anchors, origins, named_by }: AnchoredCall) => ({
  ...(anchors.length > 0 && { anchors }),
  ...(origins && { origins }),
  ...(named_by && { named_by }),
})

/** The inputs that a person sees, with why a call waits; several calls are by their numbers. */
export function inputsOf(held: AskedCall): object {
  if ('call' in held) return { ...held.call.input, ...causesOf(held.call) }
  if ('payment' in held) {
    const { tool: _tool, input, ...about } = held.payment
    return { ...input, ...about }
  }
  const numbered = Object.fromEntries(held.calls.map(({ input }, index) => [index + 1, input]))
  return { ...numbered, calls: held.calls.map((call) => ({ tool: call.tool, ...causesOf(call) })) }
}

/** Equal questions are asked once, wherever their values stand: the questions of what waits. */
export function questionsOf(held: object): object[] {
  const { calls, call, ...rest } = held as { calls?: AnchoredCall[]; call?: AnchoredCall }
  const asked = calls ?? (call && [call])
  return asked ? asked.map(({ origins: _origins, named_by: _named_by, ...one }) => ({ call: one })) : [rest]
}

/** `kept`: its caller makes it. */
type Numbered = OneCall & { number: number; edited?: EditedCall; kept?: boolean }
/** A version before this one kept a call alone. */
type Approved = ({ calls: Numbered[] } | OneCall) & { head: EntryHead }
const approvedIn = (payload: Approved): Numbered[] => ('calls' in payload ? payload.calls : [{ ...payload, number: 1 }])

/**
 * Makes approved calls: payments by tools that ask nobody again, others with the tools of the
 * scope. The key of a payment comes from the approval, so that one that a crash cut off is made
 * once. Another tool may not know such a key: its call is not repeated if it may
 * have happened. The end is reported to D1, where whoever approved it looks.
 */
export function handleCalls(parts: HeldCallsParts): void {
  const { jobs, outbox, unit, features } = parts
  const tools = (): Tools => features.find(({ approvedTools }) => approvedTools)?.approvedTools ?? {}
  const end = (key: string, run: CallEnd) =>
    unit((ending) => {
      jobs.done(ending, 'approved-payment', key)
      outbox.put(ending, 'approved-runs', key, { ...run, ended_at: ending.now } satisfies ApprovalRun)
    })
  jobs.handle<Approved>('approved-payment', {
    work: 'run',
    at_once: 1,
    attempts: MOST_DEATHS,
    run: async ({ key, payload }) => {
      const runs: NumberedRun[] = []
      for (const one of approvedIn(payload)) {
        const { number, kept = false, ...call } = one
        const own_key = `approval:${key}${number > 1 ? `:${number}` : ''}`
        const run = () => perform(parts, tools(), { ...call, head: payload.head, key: own_key })
        runs.push(kept ? keptRun(one) : { number, ...(await run()) })
      }
      end(key, together(runs))
    },
    giveUp: ({ key, payload }, reason) => {
      const runs = approvedIn(payload).map((one): NumberedRun => {
        return one.kept ? keptRun(one) : { number: one.number, ...NOTHING_DONE, ...ended(one.tool, 'unknown', reason) }
      })
      end(key, together(runs))
    },
  })
}

type NumberedRun = CallEnd & { number: number }

/** The end of all calls; their outputs are by the numbers of the calls. */
function together(runs: readonly NumberedRun[]): CallEnd {
  const [one, ...more] = runs
  if (!one) throw new Error('an approval has no call')
  const { number: _number, ...first } = one
  if (more.length === 0) return first
  const failed = runs.filter(({ status }) => status !== 'ok')
  const status = failed.length < runs.length && failed.length > 0 ? 'partial_failure' : first.status
  const reasons = failed.map(({ steps, reason }) => `${steps[0]?.tool}: ${reason}`)
  const outputs = outputsOf(runs)
  const reason = reasons.length > 0 ? reasons.join('; ') : first.reason
  return { ...NOTHING_DONE, status, reason, outputs, steps: runs.flatMap(({ steps }) => steps) }
}

/** The outputs by number. They are in a row: one that takes more than is left of it is left out. */
function outputsOf(runs: readonly NumberedRun[]): ApprovalRun['outputs'] {
  let left: number = limits.sql_json_bytes
  return Object.fromEntries(
    runs.map(({ number, outputs }) => {
      const bytes = byteLength(JSON.stringify(outputs))
      if (bytes > left) return [number, {}]
      left -= bytes
      return [number, outputs]
    }),
  )
}

/** A refusal, such as too little money, is in the log as the end of the effect, too. */
async function perform(
  { effects, settings, toolbox, log }: HeldCallsParts,
  tools: Tools,
  { head, key, edited, ...approved }: Omit<Numbered, 'number' | 'kept'> & { head: EntryHead; key: string },
): Promise<CallEnd> {
  const { tool } = approved
  if ('anchors' in approved) await toolbox.ready()
  const found = 'anchors' in approved ? toolbox.find(tool) : payingTool(tools[tool], settings())
  if (!found.ok) return { ...NOTHING_DONE, ...ended(tool, 'refused', found.detail) }
  const { definition } = found
  const input = edited ? withoutTaken(definition, approved.input, takenIn(edited)) : approved.input
  const { signal } = new AbortController()
  const once = 'anchors' in approved ? { turn_id: key, earlier_turns: [key] } : { turn_id: null, earlier_turns: [], key }
  const call = {
    ...once,
    cause: { by: key },
    head,
    signal,
    timeout_ms: settings().effect_timeout_ms,
    approved: true,
    ...(edited && { edited }),
  }
  try {
    const output = log.clean(await effects.run({ ...call, tool, definition, input }), head.trace_id)
    return { ...NOTHING_DONE, ...ended(tool, 'ok', null), outputs: isJsonFields(output) ? output : {} }
  } catch (error) {
    if (isPlatformFault(error)) throw error
    if (error instanceof EditRefused) return { ...NOTHING_DONE, ...ended(tool, 'refused', error.message) }
    return { ...NOTHING_DONE, ...ended(tool, error instanceof CutOff ? 'unknown' : 'failed', messageOf(error)) }
  }
}

const payingTool = (definition: ToolDefinition | undefined, { market }: Settings): FoundTool =>
  definition && market ? { ok: true, definition } : { ok: false, detail: 'the scope does not take part in the market any more' }

const ended = (tool: string, status: ApprovalRun['status'], reason: string | null) => ({ status, reason, steps: [{ tool, status }] })

const NOTHING_DONE = { run_id: null, reason: null, outputs: {}, steps: [], compensation: [], cost_usd: 0, ended_at: null }
