import { Budget } from './budget.ts'
import { ModelCalls } from './model-outage.ts'
import { ModelOutage } from './model-outage.ts'
import { Parking } from '../inbox/parking.ts'
import type { Ground } from '../storage/wiring.ts'

type ModelAccessParts = Pick<Ground, 'database' | 'hider' | 'settings' | 'now' | 'random'>

/**
 * Wires the parts that control model calls: the budget, the provider's outage and waiting events.
 */
export function composeModelAccess({ database, hider, settings, now, random }: ModelAccessParts) {
  const budget = new Budget(database, settings, now)
  const parking = new Parking(database)
  const outage = new ModelOutage({ database, parking, settings, now, random })
  const model_calls = new ModelCalls(database)
  const hide = (text: string) => hider.text(text)
  return { budget, parking, outage, model_calls, hide }
}
