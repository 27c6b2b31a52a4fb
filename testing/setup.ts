import { applyD1Migrations, type D1Migration, reset } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { resetClock } from './clock.ts'
import './proxy-once.ts'
import type { Env } from '../src/env.ts'
import { MORE_NAMES } from '../src/store/store.ts'

// Test files may share the runtime. Without this, a file would see the data of another.
await reset()
resetClock()
const { MIGRATIONS, ...bound } = env as Env & { MIGRATIONS: D1Migration[] }
for (const name of ['DB', ...MORE_NAMES] as const) {
  const db = bound[name]
  if (db) await applyD1Migrations(db, MIGRATIONS)
}
