import { env } from 'cloudflare:workers'
import { expect, test } from 'vitest'
import { matchesScope } from '../../../src/contract/principal.ts'
import { countMatching, groupDeadLetters, listDeadLetters } from '../../../src/store/dead-letters.ts'
import { deadLetterCounts } from '../../../src/http/operations/health-report.ts'
import { seededRandom } from '../../support/random.ts'
import { freshScope } from '../../support/scopes.ts'

type Letter = { id: string; scope: string | null; error: string; type: string; origin: string; at: number }

async function bury(letters: readonly Letter[]): Promise<void> {
  const insert = `INSERT INTO dead_letters (id, origin, scope, event_id, type, error, attempts, payload, dead_lettered_at)
    SELECT value->>'id', value->>'origin', value->>'scope', value->>'id', value->>'type', value->>'error', 5, '{}', value->>'at' FROM json_each(?)`
  await env.DB.prepare(insert).bind(JSON.stringify(letters)).run()
}

const letterIn = (scope: string | null, at: number, more: Partial<Letter> = {}): Letter => {
  return { id: crypto.randomUUID(), scope, error: `lost after ${at % 7} tries`, type: 'note', origin: 'scope', at, ...more }
}

type Query = Omit<Parameters<typeof listDeadLetters>[1], 'limit' | 'before'>
/** All pages, one after another. */
async function paged(query: Query, limit: number, part?: number): Promise<string[]> {
  const ids: string[] = []
  for (let before: { at: number; id: string } | undefined; ;) {
    const { items, more } = await listDeadLetters(env.DB, { ...query, before, limit }, part)
    ids.push(...items.map(({ id }) => id))
    const last = items.at(-1)
    if (!more || !last) return ids
    before = { at: last.dead_lettered_at, id: last.id }
  }
}
const newestFirst = (letters: readonly Letter[]): string[] =>
  letters.toSorted((one, other) => other.at - one.at || (other.id < one.id ? -1 : 1)).map(({ id }) => id)

/** The rows that the statements read. */
async function rowsOf(work: (db: D1Database) => Promise<unknown>): Promise<number> {
  let rows = 0
  const statement = (one: D1PreparedStatement): D1PreparedStatement =>
    new Proxy(one, {
      get: (target, name) => {
        if (name === 'bind') return (...values: unknown[]) => statement(target.bind(...values))
        if (name !== 'all' && name !== 'run' && name !== 'raw' && name !== 'first') return Reflect.get(target, name) as unknown
        return async (...args: unknown[]) => {
          rows += (await target.all()).meta.rows_read
          return (Reflect.get(target, name) as (...given: unknown[]) => unknown).apply(target, args)
        }
      },
    })
  const { DB } = env
  await work(
    new Proxy(DB, {
      get: (target, name) => (name === 'prepare' ? (sql: string) => statement(DB.prepare(sql)) : Reflect.get(target, name)),
    }),
  )
  return rows
}

test('pages of a key of some scopes have each of its letters once, newest first, whatever others have', async () => {
  const tenant = freshScope()
  const other = freshScope()
  const scopes = [`${tenant}/a`, `${tenant}/b`, `${tenant}/b/c`, `${tenant}-d`, other, null]
  // Many have the same time.
  const letters = Array.from({ length: 3000 }, (_, index) =>
    letterIn(index < 2500 ? other : (scopes[index % 6] ?? null), 5000 - (index >> 2)),
  )
  await bury(letters)
  const ids = (is: (scope: string) => boolean) => newestFirst(letters.filter((letter) => letter.scope !== null && is(letter.scope)))
  const own = ids((scope) => scope.startsWith(`${tenant}/`))
  const patterns = [`${tenant}/*`]
  expect(await paged({ patterns }, 7)).toEqual(own)
  expect(await paged({ patterns: [`${tenant}/b*`, `${tenant}/b/*`, `${tenant}/a`] }, 100)).toEqual(own)
  const ends = ids((scope) => scope.endsWith('/c') || scope.endsWith('-d'))
  expect(await paged({ patterns: [`${tenant}*c`, `${tenant}-d`] }, 3)).toEqual(ends)
  expect(await paged({ patterns: [freshScope()] }, 3)).toEqual([])
  expect(await paged({ patterns, error: 'lost after # tries' }, 10, 400)).toEqual(own)
  expect(await paged({ patterns, error: 'lost' }, 10, 400)).toEqual([])
  expect(await countMatching(env.DB, { patterns, error: 'lost after # tries' }, 400)).toBe(own.length)
  const [group] = await groupDeadLetters(env.DB, { patterns })
  expect(group).toMatchObject({ error: 'lost after # tries', letters: own.length, scopes: 3 })
})

test('pages of a key of any patterns have each letter once, and the count is theirs', async () => {
  const tenant = freshScope()
  const random = seededRandom(7)
  const pick = <Item>(of: readonly Item[]): Item => of[Math.floor(random() * of.length)] as Item
  const names = ['', '-', '/a', '/a/b', '/a/b/c', '/ab', '/b', '/b-c', '/A'].map((end) => `${tenant}${end}`)
  const other = (): string | null => (random() < 0.1 ? null : `other-${tenant}/${Math.floor(random() * 30)}`)
  const letters = Array.from({ length: 3000 }, () =>
    letterIn(random() < 0.7 ? other() : pick(names), Math.floor(random() * 300), { type: pick(['note', 'mail']) }),
  )
  await bury(letters)
  const ends = ['/a', '/a*', '/*', '*', '/a/b*', '*c', '/*b*', '', '/b', '/zz']
  const pool = [...ends.map((end) => `${tenant}${end}`), `*${tenant}/b`, `*${tenant}/a/b/c`]
  const many = Array.from({ length: 100 }, (_, index) => `${tenant}/${index}*`)
  for (let round = 0; round < 8; round += 1) {
    const patterns = [pick(pool), pick(pool), pick(pool), ...(round === 0 ? many : [])]
    const which = { patterns, ...(random() < 0.4 && { type: 'mail' }), ...(random() < 0.3 && { error: 'lost after # tries' }) }
    const own = letters.filter(({ scope, type }) => {
      return scope !== null && type === (which.type ?? type) && patterns.some((pattern) => matchesScope(pattern, scope))
    })
    expect(await paged(which, 1 + Math.floor(random() * 90), 700)).toEqual(newestFirst(own))
    expect(await countMatching(env.DB, which, 700)).toBe(own.length)
  }
})

test('letters of other tenants, however many, cost a list of a key of some scopes nothing', async () => {
  const [tenant, other] = [freshScope(), freshScope()]
  await bury(Array.from({ length: 20 }, (_, index) => letterIn(`${tenant}/one`, 1000 + index)))
  const read = async () => ({
    page: await rowsOf((db) => listDeadLetters(db, { patterns: [`${tenant}/*`], limit: 50 })),
    counts: await rowsOf((db) => deadLetterCounts(db, [`${tenant}/*`])),
    total: await rowsOf((db) => countMatching(db, { patterns: [`${tenant}/*`] })),
  })
  for (let batch = 0; batch < 6; batch += 1)
    await bury(Array.from({ length: 1000 }, (_, index) => letterIn(other, 100_000 + 1000 * batch + index)))
  const few = await read()
  for (let batch = 0; batch < 6; batch += 1)
    await bury(Array.from({ length: 1000 }, (_, index) => letterIn(other, 200_000 + 1000 * batch + index)))
  const many = await read()
  expect(many.page).toBeLessThan(few.page + 100)
  expect(many).toMatchObject({ counts: few.counts, total: few.total })
})

test('health counts letters by origin, and those of the market not at all', async () => {
  const scope = freshScope()
  const origins = ['scope', 'scope', 'scope', 'queue', 'market']
  await bury(origins.map((origin, index) => letterIn(`${scope}/x`, 1000 + index, { origin })))
  expect(await deadLetterCounts(env.DB, [`${scope}/*`])).toEqual({ total: 4, by_origin: { scope: 3, queue: 1 } })
})
