import type { Stored } from '../inbox/event-row.ts'
import type { Settlement } from '../inbox/settlement.ts'
import type { Toolbox } from '../effects/toolbox.ts'
import type { Actions } from './actions.ts'
import { toolKeys } from '../../tools/tool-keys.ts'
import { actOf } from './acts.ts'
import { leftBy, type Decided, type Left } from './fire.ts'
import type { HeldEvents } from '../inbox/held-events.ts'
import type { Proving } from './shadow.ts'
import type { Unit } from '../unit.ts'

type Parts = {
  scope: string
  actions: Actions
  proving: Proving
  held: HeldEvents
  settlement: Settlement
  toolbox: Toolbox
}

/** What the chain's decision means for its event: how it is left, and what begins once that is stored. */
export class ReflexOutcome {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** `first` is the log's place of the decision's first entry. Null where no reflex fired. */
  leaves(decided: Decided | null, first: number): Left | null {
    return decided?.fire ? leftBy(decided.fire, first + decided.fired) : null
  }

  /** For an event that was stored before. */
  leave(unit: Unit, { seq }: Stored, left: Left): void {
    const { held, settlement } = this.#parts
    if (left.status === 'processing') held.hold(unit, seq)
    else if (left.status === 'completed') settlement.end(unit, [seq], left)
  }

  /** `waits`: a turn will decide on the event. */
  begin(unit: Unit, stored: Stored, { fire, fired, trials }: Decided, { first, waits }: { first: number; waits: boolean }): void {
    const { actions, proving, toolbox, scope } = this.#parts
    if (fire && !fire.reused) actions.begin(unit, fire, stored, first + fired)
    const acting = fire && fire.action.action_type !== 'escalate' ? fire : null
    if (trials.length === 0) return
    const decision = acting ? { by: 'reflex' as const, acts: [actOf(acting.action, toolKeys(toolbox.all, scope))] } : null
    proving.watch(unit, stored, trials, decision)
    if (!decision && !waits) proving.decided(unit, [{ seq: stored.seq, id: stored.event.id, trace_id: stored.event.meta.trace_id }], null)
  }
}
