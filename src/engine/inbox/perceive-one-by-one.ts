import { together, type Guard, type GuardedWork } from '../upkeep/guard.ts'
import type { Stored, Inbox } from './inbox.ts'
import type { Settlement } from './settlement.ts'
import type { UnitOfWork } from '../storage/unit.ts'

type PerceivingParts = { guard: Guard; inbox: Inbox; settlement: Settlement; unit: UnitOfWork; now: () => number }

/** Isolates the event that made perception crash, and dead-letters it. */
export async function perceiveOneByOne(
  { guard, inbox, settlement, unit, now }: PerceivingParts,
  perceive: (stored: Stored, work: GuardedWork) => void,
): Promise<void> {
  try {
    for (let [one] = inbox.unperceived(now(), 1); one; [one] = inbox.unperceived(now(), 1)) {
      const { seq } = one
      const work = { kind: 'event' as const, id: String(seq) }
      if (await guard.begin(work)) {
        perceive(one, work)
        guard.done(work)
      } else {
        const reason = `this event crashed its scope ${guard.deaths(work)} times when it was perceived: ${guard.reason(work)}`
        unit((unit) => {
          settlement.end(unit, [seq], { status: 'dead_lettered', outcome: { by: 'failure', reason }, error: reason })
          guard.park(unit, work, reason)
        }, work)
      }
    }
    guard.done(together('event'))
  } catch {
    // The unit has reported the failure, and the object restarts.
  }
}
