import type { Agent } from '../../agent/define-agent.ts'
import { messageOf } from '../../base/error-text.ts'
import type { OperatorCall, Refused } from '../../contract/scope-api.ts'
import type { Settings } from '../../contract/settings.ts'
import type { Effects } from './effect-lane.ts'
import { isPlatformFault } from '../../base/faults.ts'
import { scopeHead } from '../spans.ts'
import type { Proving } from '../reflexes/shadow.ts'
import type { UnitOfWork } from '../unit.ts'

type Parts = {
  effects: Effects
  proving: Proving
  unit: UnitOfWork
  agent: () => Agent
  settings: () => Settings
}

/**
 * What an operator has the scope's agent do by one of its tools: an effect like any other, in its lane, journalled and logged, also where the setting `tools`
 * keeps the tool from the model. Under a key that the caller gives, so that what a crash cuts off can be asked for again.
 */
export class OperatorCalls {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async call({ tool, input, key, trace }: OperatorCall, by: string): Promise<{ ok: true } | Refused<'no_tool' | 'failed'>> {
    const { effects, proving, unit, agent, settings } = this.#parts
    const { name, tools } = agent()
    const given = Object.hasOwn(tools, tool) ? tools[tool] : undefined
    if (!given) return { ok: false, reason: 'no_tool', detail: `the agent ${name}, which serves this scope, has no tool ${tool}` }
    // Under the tool's own key, it might be answered by what an earlier call did.
    const { idempotence_key: _own, ...definition } = given
    const { signal } = new AbortController()
    const timeout_ms = settings().effect_timeout_ms
    const head = scopeHead(trace)
    unit((unit) => unit.log({ ...head, kind: 'call-received', call: 'tool', name: tool, by }))
    const request = { tool, definition, input, key, turn_id: null, earlier_turns: [], cause: { by }, head, signal, timeout_ms }
    try {
      await effects.run(request)
    } catch (error) {
      if (isPlatformFault(error)) throw error
      return { ok: false, reason: 'failed', detail: messageOf(error) }
    }
    const { undoes } = definition
    if (undoes) unit((unit) => proving.undone(unit, { tool, undoes }, input, { turn_id: null, who: by }))
    return { ok: true }
  }
}
