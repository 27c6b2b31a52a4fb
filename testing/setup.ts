import { applyD1Migrations, type D1Migration, reset } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { resetClock } from './clock.ts'
import './proxy-once.ts'
import type { Env } from '../src/env.ts'

// Test files may share the runtime. Without this, a file would see the data of another.
await reset()
resetClock()
const { DB, MIGRATIONS } = env as Env & { MIGRATIONS: D1Migration[] }
await applyD1Migrations(DB, MIGRATIONS)
