import { z } from 'zod'
import type { JsonFields } from '../base/json.ts'
import type { Event } from '../core/event.ts'
import { marketCall } from './genesis.ts'
import { checkJson, isFields } from '../base/check-json.ts'
import type { Result } from '../base/result.ts'

const name = z.string().min(1).max(128)
const text = z.string().max(16_384)
const reason = z.string().min(1).max(1000)
/** Already parsed from JSON and checked for depth. */
const fields = z.record(z.string(), z.unknown())
const value = z.unknown()

const options = {
  consume: z.boolean().optional().describe('Removes the event from the context.'),
  preempt: z.boolean().optional().describe('Aborts a turn in flight first.'),
  idempotence_key: name.optional().describe('Actions with the same key are carried out once.'),
}

function actionType<const Type extends string, Shape extends z.ZodRawShape>(type: Type, shape: Shape) {
  return z.strictObject({ action_type: z.literal(type), ...shape, ...options })
}

/** The fields that the acts of a sequence share with actions by themselves. */
const shapes = {
  call_tool: { tool: name, args: fields },
  emit_event: { event: z.looseObject({ type: name }) },
  reply: { content: text },
  run_skill: { skill_id: name, inputs: fields },
  set_scratch: { key: name, value },
}

/** Characters of a JSON pointer. */
export const LONGEST_POINTER = 512
const earlier = {
  output: z.int().min(0).max(6).describe('The place of an earlier act in the sequence, from 0.'),
  path: z
    .string()
    .max(LONGEST_POINTER)
    .regex(/^(?:\/[^/]*)*$/, 'must be a JSON pointer')
    .describe('A JSON pointer into its output; empty for the whole.'),
}
const use = z.strictObject({
  at: z
    .string()
    .max(LONGEST_POINTER)
    .regex(/^\/(?:(?:args|inputs|event)\/.|value(?:\/|$))/, 'must be a JSON pointer below args, inputs, event or value')
    .describe('A JSON pointer into the act, to the value that is replaced.'),
  ...earlier,
})
const uses = z
  .array(use)
  .max(16)
  .optional()
  .describe('Values that are outputs of earlier acts. They stand beside the arguments: nothing inside a value refers to an output.')
const spoken = z
  .array(z.union([text, z.strictObject(earlier)]))
  .min(1)
  .max(32)

function inSequence<const Type extends keyof typeof shapes>(type: Type) {
  return z.strictObject({ action_type: z.literal(type), ...shapes[type], uses })
}

/** An act of a sequence. A reply has its text, or parts of it that may be earlier outputs. */
const sequenceAct = z.union([
  inSequence('call_tool'),
  inSequence('emit_event'),
  z.strictObject({ action_type: z.literal('reply'), ...shapes.reply }),
  z.strictObject({ action_type: z.literal('reply'), parts: spoken }),
  inSequence('run_skill'),
  inSequence('set_scratch'),
])
export type SequenceAct = z.infer<typeof sequenceAct>
/** A sequence has so many acts, whichever branch it takes. */
export const MOST_ACTS = 8
export const MOST_BRANCHES = 8

const scalar = z.union([z.string().max(512), z.number(), z.boolean(), z.null()])
/** Characters of words that a branch asks for. */
export const LONGEST_SAID = 128
/** A word, or several in a row. */
const said = z.string().min(1).max(LONGEST_SAID)
/** Fields of an object that a branch knows. */
export const MOST_NAMED = 64
const condition = z
  .strictObject({
    ...earlier,
    one_of: z.array(scalar).min(1).max(64).optional().describe('It is one of these values.'),
    none_of: z.array(scalar).min(1).max(64).optional().describe('It is missing, or none of these values.'),
    at_least: z.number().optional(),
    above: z.number().optional(),
    at_most: z.number().optional(),
    below: z.number().optional(),
    says: z.array(said).min(1).max(16).optional().describe('It is a text with all of these words, whatever their case and punctuation.'),
    says_none: z.array(said).min(1).max(16).optional().describe('It is a text with none of these words.'),
    empty: z.boolean().optional().describe('True: a list without items. False: one with items.'),
    present: z.boolean().optional().describe('False: the output has nothing there.'),
    only: z.array(z.string().max(LONGEST_SAID)).min(1).max(MOST_NAMED).optional().describe('It is no object with another field.'),
  })
  .describe('A question about the output of an earlier act. All of its tests must hold.')
export type OutputCondition = z.infer<typeof condition>
const branch = z.strictObject({
  when: z.array(condition).max(32).describe('All must hold. Empty: it is taken if no branch before it is.'),
  acts: z.array(sequenceAct).max(MOST_ACTS).describe('Empty: nothing more is to be done.'),
})
export type SequenceBranch = z.infer<typeof branch>

const alone = z.discriminatedUnion('action_type', [
  actionType('call_tool', shapes.call_tool),
  actionType('emit_event', shapes.emit_event),
  actionType('reply', shapes.reply),
  actionType('run_skill', shapes.run_skill),
  actionType('write_artifact', { artifact_id: name, artifact_type: name, content: text }),
  actionType('invoke_artifact', { artifact_id: name, method: name, args: z.array(value).max(32) }),
  actionType('set_scratch', shapes.set_scratch),
  actionType('ignore', { reason }),
  actionType('cancel_turn', { reason }),
  actionType('escalate', { reason }),
])
const sequence = actionType('sequence', {
  acts: z.array(sequenceAct).min(1).max(MOST_ACTS).describe('Done in this order, as one decision. It stops at the first that fails.'),
  branches: z
    .array(branch)
    .min(1)
    .max(MOST_BRANCHES)
    .optional()
    .describe('What follows is the first branch whose conditions hold. If none does, the event takes the slow path.'),
  any_order: z
    .boolean()
    .optional()
    .describe('Its acts do not depend on each other: it agrees with a decision that has them in any order. Not with outputs or branches.'),
  any_words: z
    .boolean()
    .optional()
    .describe(
      'It agrees with a decision that has the same acts and says anything, or nothing. A person allows its words before it acts by proof.',
    ),
})
export const actionSchema = z.discriminatedUnion('action_type', [...alone.options, sequence])
export type Action = z.infer<typeof actionSchema>
/** For responses. Input schemas stay anonymous, because a named one becomes a reference. */
export const action = actionSchema.meta({ id: 'Action' })

export type Sequence = Extract<Action, { action_type: 'sequence' }>

export type ActionCall = { tool: string; args: unknown }

/** The call of a tool that an action is; null if it is another act, or names nothing. */
export function toolCallOf(action: Action): ActionCall | null {
  switch (action.action_type) {
    case 'call_tool':
      return { tool: action.tool, args: action.args }
    case 'write_artifact': {
      const { artifact_type, artifact_id: id, content: code } = action
      return artifact_type === 'reflex' ? { tool: 'write_reflex', args: { id, code } } : null
    }
    case 'invoke_artifact': {
      const { method, args } = action
      if (method === 'update_agent_config') return { tool: method, args: args[0] ?? {} }
      const call = marketCall(action)
      return call && { tool: call.tool, args: call.input }
    }
    case 'emit_event':
    case 'reply':
    case 'run_skill':
    case 'set_scratch':
    case 'sequence':
    case 'ignore':
    case 'cancel_turn':
    case 'escalate':
      break
  }
  return null
}

/** True if the act depends on outputs of earlier ones. */
export const readsOutputs = (act: SequenceAct): boolean =>
  'parts' in act ? act.parts.some((part) => typeof part !== 'string') : 'uses' in act && (act.uses?.length ?? 0) > 0

/** A sequence, or the work that it is. */
export type Branching = { acts: readonly SequenceAct[]; branches?: readonly SequenceBranch[] | undefined }

/** All acts of a sequence and of its branches. */
export const actsIn = ({ acts, branches = [] }: Branching): SequenceAct[] => [...acts, ...branches.flatMap((branch) => branch.acts)]

/** The acts of an action and of its branches, without the outputs that they use. */
export const actionsIn = (action: Action): Action[] => (action.action_type === 'sequence' ? actsIn(action).map(withoutOutputs) : [action])

export function withoutOutputs(act: SequenceAct): Action {
  if ('parts' in act) return { action_type: 'reply', content: act.parts.filter((part) => typeof part === 'string').join('') }
  if (act.action_type === 'reply') return act
  const { uses: _uses, ...action } = act
  return action
}

type ParsedAction = Result<{ action: Action }, { error: string }>

/** `input` is untrusted JSON. */
export function parseAction(input: unknown): ParsedAction {
  const json = checkJson(input)
  if (!json.ok) return { ok: false, error: `${json.error.path || 'the action'} ${json.error.message}` }
  // The errors of actions alone are in recordings, whose replay makes them again.
  const parsed = (isSequence(input) ? sequence : alone).safeParse(input)
  return parsed.success ? { ok: true, action: parsed.data } : { ok: false, error: explain(parsed.error) }
}

const isSequence = (input: unknown): boolean => isFields(input) && input['action_type'] === 'sequence'

const MAX_ISSUES = 3

function explain({ issues }: z.ZodError): string {
  return issues
    .slice(0, MAX_ISSUES)
    .map(({ path, message }) => (path.length > 0 ? `${path.join('.')}: ${message}` : message))
    .join('; ')
}

/** Work of an action outside the scope. The gate decides on a skill when its run starts. */
export type LaneWork =
  | { kind: 'tool'; tool: string; input: unknown }
  | { kind: 'event'; event: Event }
  | { kind: 'skill'; skill_id: string; inputs: JsonFields }
  | ({ kind: 'sequence' } & Branching)
/** A permitted action runs at once, in the event's own transaction, or in the effect lane. */
export type Permitted = { ok: true; lane: false } | { ok: true; lane: true; work: LaneWork }
export type Permission = Permitted | { ok: false; detail: string }
