import type { Event } from '../core/event.ts'

const TYPES: ReadonlySet<string> = new Set(['transfer', 'offer', 'deal', 'contract', 'invocation'])

/** True for an event that the Ledger sent: one with a key has a sender. */
export const isMarketEvent = ({ type, source, meta }: Event): boolean => source === 'ledger' && meta.sender === undefined && TYPES.has(type)

/** The reflex that is called sees the call itself, with its input: not this message of it, too. */
export const isCallOf = ({ id }: { id: string }, event: Event & { service?: unknown }): boolean =>
  event.type === 'invocation' && event.service === `reflex:${id}`
