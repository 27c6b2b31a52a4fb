import { z } from 'zod'
import { checkJson } from '../base/check-json.ts'

const name = z.string().min(1).max(128)
const text = z.string().max(16_384)
const reason = z.string().min(1).max(1000)
/** What comes here has been parsed from JSON and checked to be shallow. */
const fields = z.record(z.string(), z.unknown())
const value = z.unknown()

const how = {
  /** The event leaves the context. */
  consume: z.boolean().optional(),
  /** A turn in flight is aborted first. */
  preempt: z.boolean().optional(),
  /** The same key is carried out once. */
  idempotence_key: name.optional(),
}

function actionType<const Type extends string, Shape extends z.ZodRawShape>(type: Type, shape: Shape) {
  return z.strictObject({ action_type: z.literal(type), ...shape, ...how })
}

/** What a reflex or a turn asks to be done. */
export const actionSchema = z.discriminatedUnion('action_type', [
  actionType('call_tool', { tool: name, args: fields }),
  actionType('emit_event', { event: z.looseObject({ type: name }) }),
  actionType('reply', { content: text }),
  actionType('run_skill', { skill_id: name, inputs: fields }),
  actionType('write_artifact', { artifact_id: name, artifact_type: name, content: text }),
  actionType('invoke_artifact', { artifact_id: name, method: name, args: z.array(value).max(32) }),
  actionType('set_scratch', { key: name, value }),
  actionType('cancel_turn', { reason }),
  actionType('escalate', { reason }),
])
export type Action = z.infer<typeof actionSchema>

export type ParsedAction = { ok: true; action: Action } | { ok: false; error: string }

/** `input` is of untrusted JSON. */
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
