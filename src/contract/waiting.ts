/** Why an event has no outcome yet. */
export const waitingReasons = ['model', 'budget', 'retry', 'turn', 'debounce', 'reflex', 'pull', 'start'] as const

/** Times are ISO in UTC; null where there is none. */
export type Waiting = { reason: (typeof waitingReasons)[number]; since: string | null; until: string | null; detail: string }
