/** The sender of events that arrive with a key, also over a socket that it opened. */
export const senderOfKey = (key_id: string): string => `key:${key_id}`

type WithSender = { source: string; meta: { sender?: string | undefined } }

/** The sender of an event: events without a key have their source alone. */
export const senderOf = ({ meta, source }: WithSender): string => meta.sender ?? source
