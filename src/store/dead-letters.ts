import { and, count, desc, eq, inArray, max, min, sql, type SQL } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import type { Event } from '../core/event.ts'
import { jsonChunks } from '../base/json.ts'
import { packedAmong } from './packs/find.ts'
import { withinBounds } from './events.ts'
import { insertEvents, nameOf } from './queued.ts'
import { listByAge, newestWithin, olderThan, upTo, type AgeQuery, type PageOf } from './page-by-bytes.ts'
import { deadLetters } from './schema.ts'

export type DeadLetterRow = typeof deadLetters.$inferSelect

/** The events of a message as dead letters, or the message itself if it is malformed. */
export function deadLettersOf(
  events: readonly Event[],
  message: { id: string; attempts: number; body: unknown },
  error: string,
): DeadLetterRow[] {
  const common = { origin: 'queue' as const, error, stack: null, attempts: message.attempts, dead_lettered_at: Date.now() }
  if (events.length === 0) {
    const payload = (JSON.stringify(message.body) ?? 'null').slice(0, 200_000)
    return [{ ...common, id: message.id, scope: null, event_id: null, type: null, payload }]
  }
  return events.map((event) => ({
    ...common,
    id: crypto.randomUUID(),
    scope: event.scope,
    event_id: event.id,
    type: event.type,
    payload: JSON.stringify(event),
  }))
}

/** Writes dead letters of the queue, except for events that their scope has reported since. */
export async function addDeadLetters(db: D1Database, letters: readonly DeadLetterRow[]): Promise<void> {
  const chunks = jsonChunks(letters.map((letter) => JSON.stringify(letter)))
  if (chunks.length === 0) return
  await db.batch(chunks.flatMap((chunk) => [db.prepare(INSERT).bind(chunk), db.prepare(NOTE_EVENTS).bind(chunk)]))
  await dropPacked(db, letters)
}

/** Takes back letters of events that packs have: a pack that is written later takes them back. */
async function dropPacked(db: D1Database, letters: readonly DeadLetterRow[]): Promise<void> {
  const buried = letters.flatMap(({ id, scope, event_id }) =>
    scope === null || event_id === null ? [] : [{ scope, id: event_id, letter: id }],
  )
  const packed = await packedAmong(db, buried)
  const known = buried.filter((one) => packed.has(nameOf(one)))
  if (known.length === 0) return
  const asked = JSON.stringify(known)
  await db.batch([DROP_LETTERS, DROP_NOTES].map((sql) => db.prepare(sql).bind(asked)))
}

const DROP_LETTERS = `DELETE FROM dead_letters WHERE id IN (SELECT value->>'letter' FROM json_each(?1))`
const DROP_NOTES = `DELETE FROM events WHERE seq IN (SELECT seq FROM json_each(?1) AS known
  CROSS JOIN events ON events.id = known.value->>'id' AND events.scope = known.value->>'scope' AND events.revision = 0)`

const INSERT = `INSERT INTO dead_letters (id, origin, scope, event_id, type, error, attempts, payload, dead_lettered_at)
  SELECT value->>'id', value->>'origin', value->>'scope', value->>'event_id', value->>'type', value->>'error', value->>'attempts', value->>'payload',
    value->>'dead_lettered_at' FROM json_each(?1) AS letter
  WHERE NOT EXISTS (SELECT 1 FROM events WHERE scope = letter.value->>'scope' AND id = letter.value->>'event_id')
  ON CONFLICT DO NOTHING`

const NOTE_EVENTS = `${insertEvents(`SELECT key AS place, value->>'payload' AS event, 'dead_lettered' AS status, value->>'attempts' AS attempts,
    value->>'error' AS error, value->>'dead_lettered_at' AS accepted_at, value->>'dead_lettered_at' AS filed, 0 AS revision,
    value->>'dead_lettered_at' AS ended_at, NULL AS agent, value->'payload'->'meta'->>'trace_id' AS trace_key, NULL AS log_from, 0 AS kinds, '' AS skills
  FROM json_each(?1) WHERE value->>'payload'->>'timestamp' IS NOT NULL AND value->>'payload'->'meta'->>'trace_id' IS NOT NULL`)}
  ON CONFLICT DO NOTHING`

/** `error`: a key of `ERROR_KEY`. */
type LetterFilter = { type?: string | undefined; error?: string | undefined; ids?: readonly string[] | undefined }
export type DeadLetterQuery = AgeQuery & LetterFilter

/** The characters of an error that its key has at most. */
const KEY_LENGTH = 200
/** The first line of an error, with `#` for each number: what errors of one cause share. */
const ERROR_KEY = sql.raw(
  [...Array.from({ length: 10 }, (_, digit) => [`${digit}`, '#']), ...Array.from({ length: 4 }, () => ['##', '#'])].reduce(
    (text, [from, to]) => `replace(${text}, '${from}', '${to}')`,
    `substr(error, 1, min(${KEY_LENGTH}, instr(error || char(10), char(10)) - 1))`,
  ),
)

/** The text before the first number is compared first, which is much faster. */
function hasKey(error: string): SQL {
  const [start = ''] = error.split('#', 1)
  return sql`(substr(error, 1, ${Array.from(start).length}) = ${start} AND ${ERROR_KEY} = ${error})`
}

const ofType = (type: string | undefined) => (type === undefined ? undefined : eq(deadLetters.type, type))

const matching = ({ type, error, ids }: LetterFilter): SQL | undefined =>
  and(
    ofType(type),
    error === undefined ? undefined : hasKey(error),
    ids === undefined ? undefined : sql`${deadLetters.id} IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`,
  )

const BY_AGE = {
  from: deadLetters,
  at: deadLetters.dead_lettered_at,
  long: [deadLetters.payload, deadLetters.error, deadLetters.stack],
  by_scope: true,
}

/**
 * A page, newest first. Letters without a scope are for keys that cover every scope. A page of one
 * error may be short: it ends with the first part of the letters that has one.
 */
export async function listDeadLetters(
  db: D1Database,
  { type, error, ids, ...query }: DeadLetterQuery,
  part = PART,
): Promise<PageOf<DeadLetterRow>> {
  if (error === undefined) return listByAge(db, { ...BY_AGE, indexed: ofType(type) }, query, matching({ type, ids }))
  for await (const { before, last } of partsOf(db, query, part)) {
    const page = await listByAge(
      db,
      BY_AGE,
      { ...query, before },
      and(matching({ type, error, ids }), upTo(last, BY_AGE.at, deadLetters.id)),
    )
    if (page.items.length > 0) return { ...page, more: page.more || last !== undefined }
  }
  return { items: [], more: false }
}

/** The keys of the errors of so many letters are computed at once. */
const PART = 10_000

/**
 * Parts of the letters, newest first, up to `last`. D1 does one statement at a time: with a part in
 * each, other tenants are served in between.
 */
async function* partsOf(db: D1Database, { scope, before: first }: Pick<AgeQuery, 'scope' | 'before'>, part: number) {
  const { dead_lettered_at, id } = deadLetters
  for (let before = first; ;) {
    const last = await drizzle(db)
      .select({ at: dead_lettered_at, id })
      .from(deadLetters)
      .where(and(scope === undefined ? undefined : eq(deadLetters.scope, scope), olderThan(before, dead_lettered_at, id)))
      .orderBy(desc(dead_lettered_at), desc(id))
      .limit(1)
      .offset(part - 1)
      .get()
    yield { before, last }
    if (!last) return
    before = last
  }
}

type LetterQuery = LetterFilter & { patterns: readonly string[]; scope?: string | undefined }
const seen = ({ patterns, scope, ...filter }: LetterQuery): SQL | undefined =>
  and(withinBounds(deadLetters.scope, patterns), scope === undefined ? undefined : eq(deadLetters.scope, scope), matching(filter))

/** The number of letters that match. */
export async function countMatching(db: D1Database, query: LetterQuery & Pick<AgeQuery, 'before'>, part = PART): Promise<number> {
  const { dead_lettered_at, id } = deadLetters
  let sum = 0
  for await (const { before, last } of query.error === undefined ? [{ before: query.before, last: undefined }] : partsOf(db, query, part)) {
    const where = and(seen(query), olderThan(before, dead_lettered_at, id), upTo(last, dead_lettered_at, id))
    sum += (await drizzle(db).select({ n: count() }).from(deadLetters).where(where).get())?.n ?? 0
  }
  return sum
}

/** Groups are made of so many letters, the newest ones. */
const MOST_GROUPED = 10_000
const MOST_GROUPS = 100

/** The newest letters by their error and type, the largest group first. */
export async function groupDeadLetters(db: D1Database, query: Omit<LetterQuery, 'error' | 'ids'>) {
  const { scope, type, dead_lettered_at: at, id } = deadLetters
  const { patterns } = query
  const isNarrow = query.scope === undefined && !patterns.includes('*')
  const own = () => inArray(id, newestWithin(BY_AGE, { patterns, condition: matching(query), limit: MOST_GROUPED }))
  const newest = drizzle(db)
    .select({ scope, type, at, key: sql<string>`${ERROR_KEY}`.as('error_key') })
    .from(deadLetters)
    .where(isNarrow ? own() : seen(query))
    .orderBy(desc(at), desc(id))
    .limit(MOST_GROUPED)
    .as('newest')
  const scopes = sql<number>`count(DISTINCT ${newest.scope})`
  return drizzle(db)
    .select({ error: newest.key, type: newest.type, letters: count(), scopes, first: min(newest.at), last: max(newest.at) })
    .from(newest)
    .groupBy(sql`${newest.key}`, newest.type)
    .orderBy(desc(count()), sql`${newest.key}`)
    .limit(MOST_GROUPS)
}

export async function findDeadLetter(db: D1Database, id: string): Promise<DeadLetterRow | null> {
  const [row] = await drizzle(db).select().from(deadLetters).where(eq(deadLetters.id, id))
  return row ?? null
}

/** A letter that was dead-lettered again in the meantime stays. */
export async function deleteDeadLetters(db: D1Database, letters: readonly Pick<DeadLetterRow, 'id' | 'dead_lettered_at'>[]): Promise<void> {
  if (letters.length === 0) return
  await db
    .prepare(`DELETE FROM dead_letters WHERE (id, dead_lettered_at) IN (SELECT value->>'id', value->>'dead_lettered_at' FROM json_each(?))`)
    .bind(JSON.stringify(letters.map(({ id, dead_lettered_at }) => ({ id, dead_lettered_at }))))
    .run()
}

export async function countDeadLetters(db: D1Database, { since, until }: { since: number; until: number }): Promise<number> {
  const sql = 'SELECT count(*) AS n FROM dead_letters WHERE dead_lettered_at >= ?1 AND dead_lettered_at < ?2'
  return (await db.prepare(sql).bind(since, until).first<number>('n')) ?? 0
}
