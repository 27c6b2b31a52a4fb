import { budgetsProblem, sharedBudgets } from '../../contract/settings/budget.ts'
import { ScopedLocks } from '../../core/scoped-locks.ts'
import { EventOutcomes } from '../inbox/event-outcomes.ts'
import { Settlement, Waiters } from '../inbox/settlement.ts'
import { TurnRows } from '../inbox/inbox.ts'
import type { Reflexes } from '../reflexes/wiring.ts'
import { Turns } from '../turns/turn-lane.ts'
import { Timers } from '../upkeep/timers.ts'
import { CallOrigins } from './call-origins.ts'
import { DoneKeys, EffectJournal } from './effect-journal.ts'
import { EffectLane } from './effect-lane.ts'
import { GlobalKeys } from './global-keys.ts'
import { Budget, ModelCalls, ModelOutage } from '../turns/model-access.ts'
import { Parking } from '../inbox/parking.ts'
import type { Ground } from '../storage/wiring.ts'

export type Lanes = Reflexes & ReturnType<typeof composeLanes>

/** Wires the lanes of effects and turns, and how their ends settle events. */
export function composeLanes(parts: Reflexes) {
  const { database } = parts
  const access = composeModelAccess(parts)
  const waiters = new Waiters()
  const settlement = new Settlement({ ...parts, waiters })
  const done_keys = new DoneKeys(database)
  const journal = new EffectJournal({ database, done_keys })
  const global_keys = new GlobalKeys(parts)
  const origins = new CallOrigins(parts)
  const effects = new EffectLane({ ...parts, journal, global_keys, locks: new ScopedLocks(), origins })
  const turns = new Turns({ ...parts, ...access, rows: new TurnRows(database), settlement, effects })
  const timers = new Timers(parts)
  const outcomes = new EventOutcomes({ ...parts, ...access, turns })
  return { ...access, waiters, settlement, done_keys, global_keys, effects, turns, timers, outcomes }
}

type ModelAccessParts = Pick<Ground, 'database' | 'hider' | 'settings' | 'now' | 'random' | 'env' | 'scope'>

/**
 * Wires the parts that control model calls: the budget, the provider's outage and waiting events.
 */
function composeModelAccess({ database, hider, settings, now, random, env, scope }: ModelAccessParts) {
  const budget = new Budget(database, settings, {
    scope,
    now,
    declared: env.REFLEX_BUDGETS,
    shared: (senders) => sharedBudgets(env, scope, senders),
    problem: () => budgetsProblem(env),
    lease: (name, asked) => env.GLOBAL_KEYS.getByName(`budget:${name}`).lease(name, asked),
  })
  const parking = new Parking(database)
  const outage = new ModelOutage({ database, parking, settings, now, random })
  const model_calls = new ModelCalls(database)
  const hide = (text: string) => hider.text(text)
  return { budget, parking, outage, model_calls, hide }
}
