/** A step of the sweep that deletes old rows of an agent's own table in D1. */
export type RetentionStep = {
  /** As the log names it, such as "incidents". */
  name: string
  /** Deletes at most `limit` rows that ended before `before` (ms), and returns how many. */
  forget: (db: D1Database, before: number, limit: number) => Promise<number>
}
