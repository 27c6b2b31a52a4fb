import { isPlatformFault } from '../../base/faults.ts'
import type { Payment } from '../../contract/market/payment.ts'
import type { ToolDefinition } from '../../tools/define-tool.ts'
import type { Lanes } from '../effects/wiring.ts'
import { scopeHead } from '../log/spans.ts'
import { MOST_DEATHS } from '../upkeep/guard.ts'

type Parts = Pick<Lanes, 'jobs' | 'effects' | 'unit' | 'settings'>

/**
 * Carries out approved payments by `tools`, which have no limit for a single payment. The key is
 * that of the approval, so that a call that a crash cut off pays once.
 */
export function handlePayments({ jobs, effects, unit, settings }: Parts, tools: Readonly<Record<string, ToolDefinition>>): void {
  const end = (key: string) => unit((ending) => void jobs.done(ending, 'approved-payment', key))
  jobs.handle<Payment>('approved-payment', {
    work: 'run',
    at_once: 1,
    attempts: MOST_DEATHS,
    async run({ key: approval_id, payload: { tool, input } }) {
      const definition = tools[tool]
      const by = `approval:${approval_id}`
      const { signal } = new AbortController()
      const call = { turn_id: null, earlier_turns: [], cause: { by }, head: scopeHead(), signal, timeout_ms: settings().effect_timeout_ms }
      try {
        if (definition && settings().market) await effects.run({ ...call, tool, definition, input, key: by })
      } catch (error) {
        // A refusal, such as too little money, is in the log as the end of the effect.
        if (isPlatformFault(error)) throw error
      }
      end(approval_id)
    },
    giveUp: ({ key }) => end(key),
  })
}
