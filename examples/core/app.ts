// An app by Hono: events come by HTTP and WebSocket, and a loop beside it acts on them.
import { Hono } from 'hono'
import { upgradeWebSocket } from 'hono/cloudflare-workers'
import { builtInEvents, eventUnion, keywordFilter, runAgent, withDefaults, type AgentLoop, type EventOf } from 'reflex-agents/core'

const schema = eventUnion(builtInEvents)
export type Known = EventOf<typeof schema>
type Loop = Pick<AgentLoop<Known, object>, 'store' | 'trigger'> & { signal: AbortSignal }

/** `ended` once `signal` is aborted: the app and its loop live as long as each other. */
export function startApp({ store, trigger, signal }: Loop) {
  const filters = [keywordFilter(['error', 'alert'])]
  const ended = runAgent<Known, object>({ store, trigger, signal, scope: 'main', deps: {}, filters })

  /** Stores an event and returns its id, or null if it does not fit its type. */
  async function publish(input: Record<string, unknown>, source: string): Promise<string | null> {
    const { data: event } = schema.safeParse(withDefaults(input, { now: Date.now(), source, scope: 'main' }))
    if (event) await store.publish(event)
    return event?.id ?? null
  }

  const app = new Hono()
  // oxlint-disable-next-line no-async-endpoint-handlers -- Hono awaits its handlers.
  app.post('/events', async (request) => {
    const id = await publish(await request.req.json(), 'api')
    return id === null ? request.json({ error: 'the event does not fit its type' }, 400) : request.json({ id })
  })
  app.get(
    '/ws/:client_id',
    upgradeWebSocket((request) => ({
      async onMessage({ data }, socket) {
        const client = request.req.param('client_id') ?? ''
        const { content = '' } = JSON.parse(String(data)) as { content?: string }
        socket.send(JSON.stringify({ ack: await publish({ type: 'ws.message', connection_id: client, content }, `ws:${client}`) }))
      },
    })),
  )
  return { app, ended }
}
