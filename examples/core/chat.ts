// A chat: each message is an event, and the context is what was said since the last answer.
import { runAgent, webSocketMessage, withDefaults, type EventOf } from 'reflex-agents/core'
import { SqliteStore } from 'reflex-agents/core/node'

type Message = EventOf<typeof webSocketMessage>
const store = SqliteStore.open<Message>()
const stop = new AbortController()

/** Stands for a model: its prompt would be `context.summarize()`. */
const answer = (said: string[]): string => `You said: ${said.join(', ')}.`

const done = runAgent<Message, { reply: (text: string) => void }>({
  store,
  scope: 'chat/ann',
  signal: stop.signal,
  deps: { reply: (text) => console.log(text) },
  async trigger(context, { reply }) {
    const said = context.ofType('ws.message').map(({ content }) => content)
    if (said.at(-1) !== 'go') return null
    reply(answer(said))
    if (said.includes('bye')) stop.abort()
    return { answered: said.length }
  },
})

for (const content of ['hello', 'go', 'bye', 'go']) {
  const message = { type: 'ws.message', connection_id: 'ann', content }
  const event = withDefaults(message, { now: Date.now(), source: 'ann', scope: 'chat/ann' })
  await store.publish(webSocketMessage.parse(event))
}
await done
store.close()
