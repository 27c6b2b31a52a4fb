/** `request` is what a caller asked for, which nothing begins again. */
export const workKinds = ['event', 'turn', 'run', 'action', 'timer', 'outbox', 'setting', 'retention', 'recovery', 'request'] as const
export type WorkKind = (typeof workKinds)[number]

/**
 * Work that took its scope down too often. `id`: an event's place in the inbox, a run's or an
 * action's id, a timer's or a setting's name.
 */
export type ParkedWork = { kind: WorkKind; id: string; deaths: number; reason: string; parked_at: string }
