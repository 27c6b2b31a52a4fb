// Two agents on one store: the first reads files that changed, and asks the second to review them.
import { builtInEvents, derive, eventType, eventUnion, runAgent, withDefaults, type EventOf } from 'reflex-agents/core'
import { SqliteStore } from 'reflex-agents/core/node'
import { z } from 'zod'

const review = eventType('review.asked', { files: z.array(z.string()) })
const schema = eventUnion([...builtInEvents, review])
type Known = EventOf<typeof schema>

const store = SqliteStore.open<Known>()
const stop = new AbortController()
const common = { store, signal: stop.signal, deps: {} }

const watcher = runAgent<Known, object>({
  ...common,
  scope: 'files',
  async trigger(context) {
    const files = context.ofType('file.change').map(({ path }) => path)
    const last = context.events.at(-1)
    if (files.length < 2 || !last) return null
    // The new event has the trace of its cause, and names it.
    await store.publish(schema.parse(derive(last, { type: 'review.asked', scope: 'reviews', files }, Date.now())))
    return { asked: files.length }
  },
})
const reviewer = runAgent<Known, object>({
  ...common,
  scope: 'reviews',
  async trigger(context) {
    for (const { files } of context.ofType('review.asked')) console.log(`reviewed ${files.join(' and ')}`)
    stop.abort()
    return {}
  },
})

for (const path of ['a.ts', 'b.ts']) {
  const change = { type: 'file.change', path, change_type: 'modified' }
  await store.publish(schema.parse(withDefaults(change, { now: Date.now(), source: 'editor', scope: 'files' })))
}
await Promise.all([watcher, reviewer])
