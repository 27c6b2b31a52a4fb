const FOUND = `SELECT 'scope:' || scope AS account, NULL AS owner FROM scopes WHERE scope IN (SELECT value FROM json_each(?1))
  UNION ALL SELECT 'key:' || name, CASE WHEN count(*) = 1 THEN min(id) END FROM keys WHERE name IN (SELECT value FROM json_each(?2)) GROUP BY name`

/** The accounts whose scope or key exists. `owner`: the key's id; null if several have the name. */
export async function ownersOf(db: D1Database, accounts: readonly string[]): Promise<{ account: string; owner: string | null }[]> {
  const named = (prefix: string): string =>
    JSON.stringify(accounts.filter((account) => account.startsWith(prefix)).map((account) => account.slice(prefix.length)))
  const { results } = await db.prepare(FOUND).bind(named('scope:'), named('key:')).all<{ account: string; owner: string | null }>()
  return results
}
