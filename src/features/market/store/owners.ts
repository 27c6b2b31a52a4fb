import type { ListedKey } from '../../../store/access/keys.ts'

/** The scopes that exist, out of the given ones. */
export async function knownScopes(db: D1Database, scopes: readonly string[]): Promise<string[]> {
  const found = 'SELECT scope FROM scopes WHERE scope IN (SELECT value FROM json_each(?1))'
  const { results } = await db.prepare(found).bind(JSON.stringify(scopes)).all<{ scope: string }>()
  return results.map(({ scope }) => scope)
}

/** A key that has `called` as its id or its name. `several`: it is one of several of this name. */
type KeyCalled = Pick<ListedKey, 'id' | 'name'> & { called: string; by: 'id' | 'name'; several: 0 | 1 }

const CALLED = `SELECT id AS called, 'id' AS "by", id, name, 0 AS several FROM keys WHERE id IN (SELECT value FROM json_each(?1))
  UNION ALL SELECT name, 'name', min(id), name, count(*) > 1 FROM keys WHERE name IN (SELECT value FROM json_each(?1)) GROUP BY name`

export async function keysCalled(db: D1Database, called: readonly string[]): Promise<KeyCalled[]> {
  return (await db.prepare(CALLED).bind(JSON.stringify(called)).all<KeyCalled>()).results
}
