import type { Requested } from '../../contract/log-entry.ts'
import { eventHead } from '../log/spans.ts'
import type { Collaborators } from '../wiring.ts'

/** Returns dead letters to pending. Earlier calls of unknown outcome for them count as failed. */
export function reopen(parts: Collaborators, ids: string[], by: Requested): string[] {
  const { unit, guard, inbox, view, loop, turns, effects } = parts
  const rows = unit((unit) => {
    const reopened = inbox.reopen(unit, ids)
    for (const { seq } of reopened) guard.releaseEvent(seq)
    const earlier = view.earlierTurns(reopened.map(({ seq }) => seq))
    effects.journal.assumeFailed(unit, earlier, 'may have happened; its event was retried by hand')
    unit.log(...reopened.map((row) => ({ ...eventHead(row), parent_id: row.parent_id, kind: 'event-reopened', ...by }) as const))
    return reopened
  })
  loop.perceiveWaiting()
  turns.consider()
  return rows.map(({ id }) => id)
}
