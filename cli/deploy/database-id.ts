/** The bindings of D1 that take Reflex's migrations: `DB`, and the databases of packed events. */
export const migratedDatabases = (toml: string): string[] =>
  Array.from(toml.matchAll(/^\s*binding\s*=\s*["'](DB|EVENTS_DB_\d+)["']/gm), ([, name = '']) => name)

/** Returns the database id in `wrangler.toml`, or null if it is still the placeholder. */
export function databaseId(toml: string): string | null {
  const id = /^\s*database_id\s*=\s*["']([^"']*)["']/m.exec(toml)?.[1]?.trim() ?? ''
  return /^[0\s-]*$/.test(id) ? null : id
}
