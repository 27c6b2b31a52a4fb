import type { SecretHider } from '../../base/secrets.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import { Budget } from './budget.ts'
import type { Database } from '../storage/database.ts'
import { ModelOutage } from './model-outage.ts'
import { Parking } from '../inbox/parking.ts'

type Parts = {
  database: Database
  hider: SecretHider
  settings: () => Settings
  now: () => number
  random: () => number
}

/**
 * Wires the parts that control model calls: the budget, the provider's outage and waiting events.
 */
export function composeModelAccess({ database, hider, settings, now, random }: Parts) {
  const budget = new Budget(database, settings, now)
  const parking = new Parking(database)
  const outage = new ModelOutage({ database, parking, settings, now, random })
  const hide = (text: string) => hider.text(text)
  return { budget, parking, outage, hide }
}
