// Says once when five errors arrive within a minute.
import { eventType, eventUnion, runAgent, typeFilter, withDefaults, type EventOf } from 'reflex-agents/core'
import { SqliteStore } from 'reflex-agents/core/node'
import { z } from 'zod'

const logLine = eventType('log.line', { level: z.enum(['info', 'error']), text: z.string() })
type LogLine = EventOf<typeof logLine>
const schema = eventUnion([logLine])

const store = SqliteStore.open<LogLine>()
const stop = new AbortController()

const done = runAgent<LogLine, object>({
  store,
  scope: 'shop',
  signal: stop.signal,
  filters: [typeFilter('log.line')],
  deps: {},
  // A result empties the context. With null its events are kept.
  async trigger(context) {
    const errors = context.window(60).filter(({ level }) => level === 'error')
    if (errors.length < 5) return null
    console.log(`5 errors in a minute, the last one: ${errors.at(-1)?.text}`)
    stop.abort()
    return { alerted: true }
  },
})

for (let number = 1; number <= 7; number += 1) {
  const line = { type: 'log.line', level: number === 3 ? 'info' : 'error', text: `line ${number}` }
  await store.publish(schema.parse(withDefaults(line, { now: Date.now(), source: 'shop', scope: 'shop' })))
}
await done
store.close()
