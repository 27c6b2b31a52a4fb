import { applyD1Migrations } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import type { Env } from '../../src/env.ts'

/** A deployment with two databases of packs beside `DB`. */
export async function severalDatabases(): Promise<Env> {
  const { MIGRATIONS, TEST_EVENTS_DB_1, TEST_EVENTS_DB_2 } = env
  for (const db of [TEST_EVENTS_DB_1, TEST_EVENTS_DB_2]) await applyD1Migrations(db, MIGRATIONS)
  return { ...env, EVENTS_DB_1: TEST_EVENTS_DB_1, EVENTS_DB_2: TEST_EVENTS_DB_2 }
}
