import { OpenAPIHono } from '@hono/zod-openapi'
import type { Env } from './bindings.ts'
export const app = new OpenAPIHono<{ Bindings: Env }>()
app.get('/health', (c) => c.json({ ok: true }))
