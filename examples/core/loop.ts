// Tells of the third refund that is asked for within an hour.
import { keywordFilter, runAgentWithTimeout, webSocketMessage, withDefaults, type EventOf } from 'reflex-agents/core'
import { SqliteStore } from 'reflex-agents/core/node'

// A path such as 'events.sqlite' keeps the events in a file.
const store = SqliteStore.open<EventOf<typeof webSocketMessage>>()
const said = (content: string) =>
  withDefaults({ type: 'ws.message', connection_id: 'ada', content }, { now: Date.now(), scope: 'orders', source: 'shop' })
for (const content of ['A refund, please.', 'Hello.', 'My refund?', 'I want a refund!'])
  await store.publish(webSocketMessage.parse(said(content)))

const stop = new AbortController()
await runAgentWithTimeout({
  store,
  scope: 'orders',
  signal: stop.signal,
  filters: [keywordFilter(['refund'])],
  deps: { notify: async (text: string) => console.log(text) },
  action_timeout_ms: 10_000,
  async trigger(context, { notify }) {
    const asked = context.window(3600)
    if (asked.length < 3) return null
    await notify(`${asked.length} refunds: ${asked.map(({ content }) => content).join(' ')}`)
    stop.abort()
    return { notified: true }
  },
})
store.close()
