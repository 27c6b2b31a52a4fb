/** A time in ms as clients see it: ISO in UTC. */
export const iso = (ms: number): string => new Date(ms).toISOString()
