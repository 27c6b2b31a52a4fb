/** A time that is later than now by more is of a clock that was ahead. */
export const AHEAD_MS = 60_000

export const iso = (ms: number): string => new Date(ms).toISOString()
/** The day, in UTC. */
export const isoDay = (ms: number): string => iso(ms).slice(0, 10)
export const isoOrNull = (ms: number | null): string | null => (ms === null ? null : iso(ms))

/** A wire shape as stored: its `Times` are numbers of ms. */
export type InMs<Shape, Times extends keyof Shape> = Omit<Shape, Times> & {
  [Time in Times]: null extends Shape[Time] ? number | null : number
}
type InIso<Row, Times extends keyof Row> = Omit<Row, Times> & { [Time in Times]: null extends Row[Time] ? string | null : string }

/** Converts these times of a row to ISO 8601. */
export function withIso<Row extends object, const Times extends keyof Row>(row: Row, times: readonly Times[]): InIso<Row, Times>
export function withIso(row: Record<string, unknown>, times: readonly string[]): object {
  return { ...row, ...Object.fromEntries(times.map((time) => [time, typeof row[time] === 'number' ? iso(row[time]) : null])) }
}
