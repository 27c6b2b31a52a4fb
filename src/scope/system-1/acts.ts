import { createHash } from 'node:crypto'
import type { ToolDefinition } from '../../agents/define-tool.ts'
import type { Action } from '../../protocol/action.ts'
import type { Act } from '../../protocol/reflex.ts'
import type { KeyOf } from '../../reflexes/agreement.ts'

export const argumentsHash = (input: unknown): string =>
  createHash('sha256')
    .update(JSON.stringify(input) ?? 'undefined')
    .digest('hex')

/** What names a tool call: how two decisions are found to be the same one. Null where there is no such tool, or it does not take such input. */
export function keyOf(tools: Readonly<Record<string, ToolDefinition>>, scope: string): KeyOf {
  return (tool, args) => {
    const definition = Object.hasOwn(tools, tool) ? tools[tool] : undefined
    const parsed = definition?.input.safeParse(args)
    if (!definition || !parsed?.success) return null
    return { idempotence_key: definition.idempotence_key?.(parsed.data, scope) ?? null, arguments_hash: argumentsHash(parsed.data) }
  }
}

/** An action as an act, once it is carried out. */
export function actOf(action: Action, identify: KeyOf): Act {
  switch (action.action_type) {
    case 'call_tool': {
      const named = identify(action.tool, action.args)
      return named ? { act: 'call_tool', tool: action.tool, ...named } : { act: 'other', action_type: action.action_type }
    }
    case 'emit_event':
      return { act: 'emit_event', event_type: action.event.type }
    case 'reply':
      return { act: 'reply', content: action.content }
    case 'set_scratch':
      return { act: 'set_scratch', key: action.key, value: action.value }
    case 'run_skill':
    case 'write_artifact':
    case 'invoke_artifact':
    case 'cancel_turn':
    case 'escalate':
      break
  }
  return { act: 'other', action_type: action.action_type }
}
