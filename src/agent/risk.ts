import { readsOutputs, toolCallOf, withoutOutputs, type Action } from '../contract/action.ts'
import { risks, type Risk } from '../contract/risk.ts'
import { riskOf } from '../reflexes/promotion.ts'
import type { Toolbox } from './toolbox.ts'

/** The risk of an action, by what the tools say about it. */
export function riskIn(toolbox: Pick<Toolbox, 'all' | 'keyOf'>, action: Action): Risk {
  if (action.action_type === 'sequence') {
    const all = new Set(action.acts.map((act) => (readsOutputs(act) ? riskOfOpen : riskIn)(toolbox, withoutOutputs(act))))
    return risks.findLast((risk) => all.has(risk)) ?? 'inside'
  }
  const call = toolCallOf(action)
  if (!call) return riskOf(action, { keyed: false, undoable: false })
  const keyed = (toolbox.keyOf(call.tool, call.args)?.idempotence_key ?? null) !== null
  const undoable = Object.values(toolbox.all).some(({ undoes }) => undoes?.tool === call.tool)
  return riskOf(action, { keyed, undoable })
}

/** Its key depends on outputs that are not known yet: a tool that has keys will have one. */
function riskOfOpen(toolbox: Pick<Toolbox, 'all' | 'keyOf'>, action: Action): Risk {
  const call = toolCallOf(action)
  const keyed = call !== null && toolbox.all[call.tool]?.idempotence_key !== undefined
  return keyed ? riskOf(action, { keyed, undoable: false }) : riskIn(toolbox, action)
}
