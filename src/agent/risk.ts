import { actsIn, readsOutputs, toolCallOf, withoutOutputs, type Action } from '../contract/action.ts'
import { CALLER_TOOL } from '../contract/model-asked.ts'
import { risks, type Risk } from '../contract/risk.ts'
import { riskOf } from '../reflexes/promotion.ts'
import { onlyReads } from '../tools/define-tool.ts'
import type { Toolbox } from './toolbox.ts'

export type RiskTools = Pick<Toolbox, 'all' | 'keyOf' | 'isFinal'>

/**
 * The risk of an action, by what the tools say about it. A caller's tool is run by the caller,
 * which may still decline, as with a call of its model: proof alone lets it be handed over, unless
 * the setting `learning.final_tools` names it.
 */
export function riskIn(toolbox: RiskTools, action: Action): Risk {
  if (action.action_type === 'sequence') {
    const all = new Set(actsIn(action).map((act) => (readsOutputs(act) ? riskOfOpen : riskIn)(toolbox, withoutOutputs(act))))
    return risks.findLast((risk) => all.has(risk)) ?? 'inside'
  }
  const call = toolCallOf(action)
  if (!call) return riskOf(action, { keyed: false, undoable: false })
  const keyed = (toolbox.keyOf(call.tool, call.args)?.idempotence_key ?? null) !== null
  // A call that only reads can be repeated, as one with a key.
  const reads = onlyReads(toolbox.all[call.tool] ?? {})
  const undoable = Object.values(toolbox.all).some(({ undoes }) => undoes?.tool === call.tool)
  const handed_over = call.tool.startsWith(CALLER_TOOL) && !toolbox.isFinal(call.tool)
  return riskOf(action, { keyed: keyed || reads, undoable: undoable || handed_over })
}

/** Its key depends on outputs that are not known yet: a tool that has keys will have one. */
function riskOfOpen(toolbox: RiskTools, action: Action): Risk {
  const call = toolCallOf(action)
  const keyed = call !== null && toolbox.all[call.tool]?.idempotence_key !== undefined
  return keyed ? riskOf(action, { keyed, undoable: false }) : riskIn(toolbox, action)
}
