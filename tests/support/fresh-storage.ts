import { applyD1Migrations, reset } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import './proxy-once.ts'

// Test files share the runtime. Without this, a file would see the rows and objects of another.
await reset()
await applyD1Migrations(env.DB, env.MIGRATIONS)
