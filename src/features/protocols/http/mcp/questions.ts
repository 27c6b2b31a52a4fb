import { inputRequired, inputResponse, type ElicitRequestFormParams, type InputRequest } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { hasRole, type Principal } from '../../../../contract/principal.ts'
import type { JsonFields } from '../../../../base/json.ts'
import type { StoredApproval } from '../../../../contract/approval.ts'
import type { Doubt } from '../../../../contract/origin.ts'
import type { Manifest, ValueType } from '../../../../skills/manifest/manifest.ts'
import type { Question } from '../../../../skills/plan/slots.ts'

/** The keys of the input requests of a call. */
export const SLOTS = 'slots'
export const APPROVAL = 'approval'

/** The schemas of values that a form can ask for. */
type Properties = ElicitRequestFormParams['requestedSchema']['properties']
const fields: Partial<Record<ValueType, Properties[string]>> = {
  string: { type: 'string' },
  url: { type: 'string', format: 'uri' },
  number: { type: 'number' },
  integer: { type: 'integer' },
  boolean: { type: 'boolean' },
}

/** A form for missing inputs; null if it would ask for a secret, or for a list or an object. */
export function slotForm(questions: readonly Question[], { signature: { inputs } }: Manifest): InputRequest | null {
  const asked = questions.map(({ slot, question }) => {
    const input = inputs.find(({ name }) => name === slot)
    const field = input && !input.secret ? fields[input.type] : undefined
    return field && ([slot, { ...field, title: slot, description: question }] as const)
  })
  const properties = asked.filter((field) => field !== undefined)
  if (properties.length === 0 || properties.length < asked.length) return null
  return inputRequired.elicit({
    mode: 'form',
    message: questions.map(({ question }) => question).join('\n'),
    requestedSchema: { type: 'object', properties: Object.fromEntries(properties), required: properties.map(([slot]) => slot) },
  })
}

export type ElicitedAnswer<Content> = { kind: 'none' } | { kind: 'declined' } | { kind: 'given'; content: Content }
type Responses = Record<string, unknown> | undefined

export const slotAnswer = (responses: Responses): ElicitedAnswer<JsonFields> => answerTo(responses, SLOTS, z.record(z.string(), z.json()))
export const approvalAnswer = (responses: Responses): ElicitedAnswer<ElicitedDecision> => answerTo(responses, APPROVAL, decision)

const decision = z
  .object({
    decision: z.enum(['approve', 'reject', 'wait']).default('wait'),
    reason: z.string().min(1).max(1000).optional(),
  })
  .catchall(z.unknown())
export type ElicitedDecision = z.infer<typeof decision>

const SET = 'set_'
const MAKE = 'make_'

/**
 * The inputs as the form has them, where each has its present value at first. Of several calls they
 * are by the number of the call, and a call that is not to be made is null.
 */
export function editsIn(answer: ElicitedDecision, { kind, inputs }: Pick<StoredApproval, 'kind' | 'inputs'>): Record<string, unknown> {
  if (kind !== 'calls') return fieldsSet(answer, SET)
  const numbers = Object.keys(inputs).filter((name) => name !== 'calls')
  return Object.fromEntries(
    numbers.map((number) => [number, answer[MAKE + number] === false ? null : fieldsSet(answer, `${SET}${number}_`)]),
  )
}

const fieldsSet = (answer: ElicitedDecision, prefix: string): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(answer).flatMap(([name, value]) => (name.startsWith(prefix) ? [[name.slice(prefix.length), value]] : [])),
  )

/** A field for each input that is a text, a number or a truth value. */
function editFields(inputs: StoredApproval['inputs'], { prefix = SET, of = '' } = {}): Properties {
  const shown = Object.entries(inputs).map(([name, value]) => [name, value, typeof value] as const)
  return Object.fromEntries(
    shown.flatMap(([name, value, type]) =>
      type === 'string' || type === 'number' || type === 'boolean'
        ? [
            [
              prefix + name,
              { type, title: of + name, default: value, description: 'Change it to approve another value.' } as Properties[string],
            ],
          ]
        : [],
    ),
  )
}

/** For each call whether it is made, and its arguments. */
function callFields(calls: readonly NumberedCall[]): Properties {
  return Object.assign(
    {},
    ...calls.map(({ number, tool, input, origins = [] }): Properties => {
      const doubts = origins.map(({ argument, value, origin }) => `${argument} (${value}) is in doubt: ${origin}`)
      const make = {
        type: 'boolean' as const,
        title: `Make call ${number}: ${tool}`,
        default: true,
        description: [JSON.stringify(input).slice(0, 1000), ...doubts].join('. '),
      }
      return { [MAKE + number]: make, ...editFields(input, { prefix: `${SET}${number}_`, of: `${number}: ` }) }
    }),
  ) as Properties
}

type NumberedCall = { number: number; tool: string; input: Record<string, unknown>; origins?: Doubt[] }

function callsIn({ inputs }: StoredApproval): NumberedCall[] {
  const about = inputs['calls'] as Omit<NumberedCall, 'number' | 'input'>[]
  return about.map((call, index) => ({ ...call, number: index + 1, input: inputs[String(index + 1)] as NumberedCall['input'] }))
}

/** The question to a person is about a run of a skill, about a call, or about several calls. */
function whatOf(approval: StoredApproval): string {
  const { id, kind, skill_id, version, inputs, why } = approval
  const reason = `Its reason: ${why.slice(0, 2000)}`
  if (kind === 'calls') return `${callsIn(approval).length} calls of one turn need an approval (${id}). ${reason}`
  const name = version === '' ? skill_id : `${skill_id}@${version}`
  return `${name} needs an approval (${id}) to run with ${JSON.stringify(inputs).slice(0, 2000)}. ${reason}`
}

/** An answer that does not fit the form counts as declined. */
function answerTo<Content>(responses: Responses, key: string, schema: z.ZodType<Content>): ElicitedAnswer<Content> {
  const view = inputResponse(responses, key)
  if (view.kind === 'missing') return { kind: 'none' }
  if (view.kind !== 'elicit' || view.action !== 'accept') return { kind: 'declined' }
  const parsed = schema.safeParse(view.content ?? {})
  return parsed.success ? { kind: 'given', content: parsed.data } : { kind: 'declined' }
}

/** Asks a person about an approval. A key that may not decide it may only look again. */
export function approvalForm(approval: StoredApproval, principal: Principal): InputRequest {
  const choices = choicesOf(approval, principal)
  const what = whatOf(approval)
  if (choices.length === 0)
    return inputRequired.elicit({
      mode: 'form',
      message: `${what}\nThis key cannot decide it. Accept once another person has, to get the result.`,
      requestedSchema: { type: 'object', properties: {} },
    })
  return inputRequired.elicit({
    mode: 'form',
    message: what,
    requestedSchema: {
      type: 'object',
      properties: {
        decision: { type: 'string', enum: [...choices, 'wait'], title: 'Decision', description: '`wait` leaves it to another person.' },
        reason: { type: 'string', title: 'Reason', maxLength: 1000 },
        ...(choices.includes('approve') && (approval.kind === 'calls' ? callFields(callsIn(approval)) : editFields(approval.inputs))),
      },
      required: ['decision'],
    },
  })
}

function choicesOf(
  { requested_key, self_approval }: StoredApproval,
  principal: Principal,
): Exclude<ElicitedDecision['decision'], 'wait'>[] {
  if (!hasRole(principal, 'operator')) return []
  const is_own = requested_key === principal.key_id && !self_approval && !hasRole(principal, 'admin')
  return is_own ? ['reject'] : ['approve', 'reject']
}
