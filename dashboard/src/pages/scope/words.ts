import type { EventRecord, Outcome } from '../../../../src/contract/event-record.ts'

/** The text of a form's field. */
export function fieldOf(event: SubmitEvent, name: string): string {
  const value = new FormData(event.currentTarget as HTMLFormElement).get(name)
  return typeof value === 'string' ? value.trim() : ''
}

/** The fields of an event's type, without the common ones. */
export function ownFields(event: EventRecord['event']): Record<string, unknown> {
  const { id: _id, type: _type, scope: _scope, source: _source, timestamp: _at, meta: _meta, ...own } = event
  return own
}

/** True if no filter, reflex, model or turn took up the event. */
export const isUnmatched = (outcome: Outcome | null): boolean => outcome?.by === 'filter' || outcome?.by === 'perceive'
