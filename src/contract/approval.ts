import { z } from 'zod'
import { isJsonFields, sameJson, type JsonFields } from '../base/json.ts'
import type { Doubt } from './origin.ts'
import type { InMs } from '../base/time.ts'

const time = z.iso.datetime()

export const approvalStatuses = ['pending', 'approved', 'rejected', 'expired', 'withdrawn'] as const
export const approvalStatus = z.enum(approvalStatuses)
export type ApprovalStatus = z.infer<typeof approvalStatus>

const approvalRunStatuses = ['running', 'ok', 'refused', 'clarify', 'needs_approval', 'partial_failure', 'failed', 'unknown'] as const

const steps = z.array(z.object({ tool: z.string(), status: z.string() }))
const run = z
  .object({
    run_id: z
      .string()
      .nullable()
      .describe("As in the scope's log; null if the gate rejected the run when it was about to start, and for a payment or a call."),
    status: z.enum(approvalRunStatuses),
    reason: z.string().nullable().describe('Why the status is not `ok`.'),
    outputs: z.record(z.string(), z.unknown()).describe("As in the scope's log: without secrets, and omitted if they are long."),
    steps,
    compensation: steps.describe('Steps that were undone after a failure.'),
    cost_usd: z.number(),
    ended_at: time.nullable(),
  })
  .meta({ id: 'ApprovalRun', description: 'The run that followed, with a delay of about a second; null until it has started.' })
export type ApprovalRun = InMs<z.infer<typeof run>, 'ended_at'>

export const approval = z
  .object({
    id: z.string(),
    scope: z.string(),
    kind: z
      .enum(['run', 'promotion', 'activation', 'payment', 'call', 'calls'])
      .describe(
        '`run`: a run of a skill. `promotion`: a reflex that is proven; `skill_id` is its id, `manifest_hash` the hash of its code, `why` its evidence, to which the approval is bound: when later decisions disagree, the question is withdrawn. `inputs.says` are words of its own choice, as it said them last. `activation`: a mined skill that passed its tests. `payment`: a call of the tool `skill_id` that spends more, or gives away other things, than the agent may without a person. `call`: a call of the tool `skill_id` that touches the `anchors` of the scope, or whose destinations no trusted origin names, which `origins` lists, beside `named_by`: the origins of the other arguments (docs/security.md). `calls`: several such calls of one turn; `inputs` has the arguments of each by its number from `1`, and in `calls` the tool of each and why it waits; `edits` changes arguments of a call by its number, and `null` leaves the call out.',
      ),
    skill_id: z.string(),
    version: z.string(),
    manifest_hash: z.string(),
    inputs_hash: z.string().describe('The approval covers this version with exactly these inputs.'),
    inputs: z.record(z.string(), z.unknown()).describe('Secrets are masked.'),
    why: z.string(),
    requested_by: z.string().describe('The key, agent or reflex that the skill would run for.'),
    requested_key: z.string().nullable().describe('The id of the key that proposed it; null if an agent or a reflex did.'),
    self_approval: z.boolean().describe('True if that key may approve it itself.'),
    created_at: time,
    expires_at: time,
    status: approvalStatus,
    decided_by: z.string().nullable(),
    decided_at: time.nullable(),
    reason: z.string().nullable(),
    edits: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe(
        'The inputs that the person changed before approving, by their names, with their new values; `inputs` are those that were asked for.',
      ),
    traceparent: z.string().nullable().describe('The place of the decision in the trace of whoever decided, if the request named one.'),
    run: run.nullable(),
  })
  .meta({ id: 'Approval' })

/** A stored approval, with times in ms. */
export type StoredApproval = InMs<Omit<z.infer<typeof approval>, 'run' | 'edits'>, 'created_at' | 'expires_at' | 'decided_at'> & {
  edits: JsonFields | null
  run: ApprovalRun | null
}
type Answer = 'status' | 'decided_by' | 'decided_at' | 'reason' | 'edits' | 'traceparent' | 'run'
export type ApprovalRequest = Omit<StoredApproval, Answer>

/** A decision as D1 took it, or the end of a question without an answer. The scope applies it. */
export type ApprovalVerdict = Pick<StoredApproval, 'reason' | 'traceparent'> & {
  edits?: JsonFields
  status: Exclude<ApprovalStatus, 'pending'>
  by: string | null
}

export const verdictOf = ({ status, decided_by: by, reason, edits, traceparent }: StoredApproval): ApprovalVerdict | null =>
  status === 'pending' ? null : { status, by, reason, traceparent, ...(edits && { edits }) }

const decisionReason = z.string().min(1).max(1000)
export const decidedFor = z.strictObject({ reason: decisionReason.optional() })
export const approvalEdits = z
  .record(z.string().min(1).max(100), z.unknown())
  .refine((changed) => Object.keys(changed).length <= 100, 'at most 100 inputs')
  .describe(
    'Inputs of a run or a call that are changed before it, by their names. They must fit its schema, and the gate runs again on them.',
  )
export const approvedFor = decidedFor.extend({ edits: approvalEdits.optional() })

const doubt = z.object({
  argument: z.string(),
  value: z.string(),
  origin: z.string(),
  in: z.string().optional().describe('The tool or the type of events whose text it is.'),
  around: z.string().optional().describe('The text in which it stands.'),
})

export const waitingStep = z
  .object({
    tool: z.string(),
    input: z.record(z.string(), z.unknown()).describe('Its arguments, as far as they are known before the run. Secrets are masked.'),
    named_by: z.record(z.string(), z.string()).describe('The origins of arguments, by their paths (docs/security.md).'),
    origins: z.array(doubt).describe('Destinations that no trusted origin names.'),
  })
  .meta({ id: 'WaitingStep', description: 'A step of a run that waits for an approval.' })
export type WaitingStep = Omit<z.infer<typeof waitingStep>, 'origins'> & { origins: Doubt[] }

const onSocket = { approval_id: z.string().min(1).max(128), traceparent: z.string().max(200).optional() }
export const approvalDecision = z.discriminatedUnion('type', [
  approvedFor.extend({ type: z.literal('approve'), ...onSocket }),
  decidedFor.extend({ type: z.literal('reject'), ...onSocket }),
])
export type ApprovalDecision = z.infer<typeof approvalDecision>

/** The inputs that differ, as the log shows them. */
export type EditedInputs = Record<string, { from: unknown; to: unknown }>

type Fields = Readonly<Record<string, unknown>>

/** The inputs that a person changed, of several calls the arguments of each; null: all stay. */
export function changedInputs({ kind, inputs }: Pick<StoredApproval, 'kind' | 'inputs'>, edits: Fields = {}): JsonFields | null {
  if (kind !== 'calls') return changedFields(inputs, edits)
  const changed = Object.entries(edits).flatMap(([number, to]) => {
    const asked = inputs[number]
    const of = isJsonFields(to) && isJsonFields(asked) ? changedFields(asked, to) : to
    return isJsonFields(to) && of === null ? [] : [[number, of]]
  })
  return changed.length === 0 ? null : (Object.fromEntries(changed) as JsonFields)
}

function changedFields(inputs: Fields, edits: Fields): JsonFields | null {
  const changed = Object.entries(edits).filter(([name, to]) => !sameJson(inputs[name] ?? null, to))
  return changed.length === 0 ? null : (Object.fromEntries(changed) as JsonFields)
}

export const editedInputs = (inputs: Readonly<Record<string, unknown>>, edits: JsonFields): EditedInputs =>
  Object.fromEntries(Object.entries(edits).map(([name, to]) => [name, { from: inputs[name] ?? null, to }]))

export const decided = { approve: 'approved', reject: 'rejected' } as const
