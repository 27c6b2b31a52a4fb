import type { Action } from '../../contract/action.ts'
import { type Act, type KeyOf, skillAct } from '../../contract/reflex.ts'

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
      return skillAct(action.skill_id, action.inputs)
    case 'write_artifact':
    case 'invoke_artifact':
    case 'cancel_turn':
    case 'escalate':
      break
  }
  return { act: 'other', action_type: action.action_type }
}
