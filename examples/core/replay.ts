// A worker dies before it acknowledges. The next one gets the event, and history reads all of them.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { timerTick, withDefaults, type EventOf } from 'reflex-agents/core'
import { SqliteStore } from 'reflex-agents/core/node'

type Tick = EventOf<typeof timerTick>
const folder = mkdtempSync(join(tmpdir(), 'ticks-'))
const open = () => SqliteStore.open<Tick>(join(folder, 'events.sqlite'), { poll_ms: 50 })
const tick = (timer_name: string) =>
  timerTick.parse(withDefaults({ type: 'timer.tick', timer_name }, { now: Date.now(), source: 'clock', scope: 'jobs' }))

const first = open()
await first.publish(tick('one'), tick('two'))
for await (const { event, attempts } of first.subscribe({ scope: 'jobs', lease_ms: 200 })) {
  console.log(`first process, attempt ${attempts}: ${event.timer_name}, and it dies`)
  break
}
first.close()

const second = open()
let left = 2
for await (const { event, ack_token, attempts } of second.subscribe({ scope: 'jobs' })) {
  console.log(`second process, attempt ${attempts}: ${event.timer_name}`)
  await second.ack(ack_token)
  if ((left -= 1) === 0) break
}
const history: string[] = []
for await (const { timer_name } of second.replay({ start: '2020-01-01T00:00:00Z', scope: 'jobs' })) history.push(timer_name)
console.log(`history: ${history.join(', ')}`)
second.close()
rmSync(folder, { recursive: true })
