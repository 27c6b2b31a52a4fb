import type { Rows } from './rows.ts'

export { Rows } from './rows.ts'

type Row = { id: string; scope: string }
type Env = { ROWS: DurableObjectNamespace<Rows>; DB: D1Database; EACH: Queue<Row>; GROUPED: Queue<Row> }

const INSERT = `INSERT INTO rows (id, scope, type, source, timestamp, payload)
  SELECT value->>'id', value->>'scope', value->>'type', value->>'source', value->>'timestamp', value FROM json_each(?1)`

const routes: Record<string, (request: Request, env: Env, scope: string) => Promise<Response>> = {
  health: async () => new Response('ok'),
  each: (request, env) => enqueue(request, env.EACH),
  grouped: (request, env) => enqueue(request, env.GROUPED),
  /** Inserts the posted rows into D1 by one statement. */
  async d1(request, env) {
    const { meta } = await env.DB.prepare(INSERT)
      .bind(await request.text())
      .run()
    return Response.json({ inserted: meta.changes }, { status: 202 })
  },
  async work(request, env, scope) {
    await env.ROWS.getByName(scope).work(await request.text())
    return new Response(null, { status: 202 })
  },
  worked: async (_request, env, scope) => Response.json(await env.ROWS.getByName(scope).worked()),
  count: async (_request, env, scope) => Response.json(await env.ROWS.getByName(scope).count()),
  socket: (request, env, scope) => env.ROWS.getByName(scope).fetch(request),
  proxy: (request, _env, host) => {
    const [, , , ...rest] = new URL(request.url).pathname.split('/')
    return fetch([decodeURIComponent(host), ...rest].join('/'), request)
  },
}

/** Sends each posted row as a message of its own. */
async function enqueue(request: Request, queue: Queue<Row>): Promise<Response> {
  const rows: Row[] = await request.json()
  await queue.sendBatch(rows.map((body) => ({ body })))
  return Response.json({ sent: rows.length }, { status: 202 })
}

export default {
  async fetch(request, env) {
    const [name = '', scope = ''] = new URL(request.url).pathname.slice(1).split('/')
    return (await routes[name]?.(request, env, scope)) ?? new Response(null, { status: 404 })
  },
  /** A call per message, or per object that the batch has messages for. */
  async queue(batch, env) {
    const groups =
      batch.queue === 'reflex-bench-each'
        ? batch.messages.map((message) => [message])
        : Array.from(Map.groupBy(batch.messages, ({ body }) => body.scope).values())
    await Promise.all(
      groups.map((messages) => env.ROWS.getByName(messages[0]?.body.scope ?? '').insert(messages.map(({ body }) => JSON.stringify(body)))),
    )
  },
} satisfies ExportedHandler<Env, Row>
