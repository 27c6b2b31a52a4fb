import { z } from 'zod'
import type { JsonFields } from '../base/json.ts'
import type { Event } from '../core/event.ts'
import { marketCall } from './genesis.ts'
import { checkJson } from '../base/check-json.ts'
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

export const actionSchema = z.discriminatedUnion('action_type', [
  actionType('call_tool', { tool: name, args: fields }),
  actionType('emit_event', { event: z.looseObject({ type: name }) }),
  actionType('reply', { content: text }),
  actionType('run_skill', { skill_id: name, inputs: fields }),
  actionType('write_artifact', { artifact_id: name, artifact_type: name, content: text }),
  actionType('invoke_artifact', { artifact_id: name, method: name, args: z.array(value).max(32) }),
  actionType('set_scratch', { key: name, value }),
  actionType('ignore', { reason }),
  actionType('cancel_turn', { reason }),
  actionType('escalate', { reason }),
])
export type Action = z.infer<typeof actionSchema>
/** For responses. Input schemas stay anonymous, because a named one becomes a reference. */
export const action = actionSchema.meta({ id: 'Action' })

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
    case 'ignore':
    case 'cancel_turn':
    case 'escalate':
      break
  }
  return null
}

export type ParsedAction = Result<{ action: Action }, { error: string }>

/** `input` is untrusted JSON. */
export function parseAction(input: unknown): ParsedAction {
  const json = checkJson(input)
  if (!json.ok) return { ok: false, error: `${json.error.path || 'the action'} ${json.error.message}` }
  const parsed = actionSchema.safeParse(input)
  return parsed.success ? { ok: true, action: parsed.data } : { ok: false, error: explain(parsed.error) }
}

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
/** A permitted action runs at once, in the event's own transaction, or in the effect lane. */
export type Permitted = { ok: true; lane: false } | { ok: true; lane: true; work: LaneWork }
export type Permission = Permitted | { ok: false; detail: string }
