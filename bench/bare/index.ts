import type { Rows } from './rows.ts'

export { Rows } from './rows.ts'

type Row = { id: string; scope: string }
type Env = { ROWS: DurableObjectNamespace<Rows>; DB: D1Database; EVENTS: Queue<Row> }

const INSERT = `INSERT INTO rows (id, scope, type, source, timestamp, payload)
  SELECT value->>'id', value->>'scope', value->>'type', value->>'source', value->>'timestamp', value FROM json_each(?1)`

const routes: Record<string, (request: Request, env: Env, scope: string) => Promise<Response>> = {
  health: async () => new Response('ok'),
  /** Sends each posted row as a message of its own. */
  async queue(request, env) {
    const rows: Row[] = await request.json()
    await env.EVENTS.sendBatch(rows.map((body) => ({ body })))
    return Response.json({ sent: rows.length }, { status: 202 })
  },
  /** Inserts the posted rows into D1 by one statement. */
  async d1(request, env) {
    const { meta } = await env.DB.prepare(INSERT)
      .bind(await request.text())
      .run()
    return Response.json({ inserted: meta.changes }, { status: 202 })
  },
  count: async (_request, env, scope) => Response.json(await env.ROWS.getByName(scope).count()),
  socket: (request, env, scope) => env.ROWS.getByName(scope).fetch(request),
}

export default {
  async fetch(request, env) {
    const [name = '', scope = ''] = new URL(request.url).pathname.slice(1).split('/')
    return (await routes[name]?.(request, env, scope)) ?? new Response(null, { status: 404 })
  },
  async queue(batch, env) {
    const byScope = Map.groupBy(batch.messages, ({ body }) => body.scope)
    await Promise.all(
      Array.from(byScope, ([scope, messages]) => env.ROWS.getByName(scope).insert(messages.map(({ body }) => JSON.stringify(body)))),
    )
  },
} satisfies ExportedHandler<Env, Row>
