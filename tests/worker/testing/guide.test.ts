import { testScope } from 'reflex-agents/testing'
import { expect, test, vi } from 'vitest'
import { greeter } from '../../support/guide/greeter.ts'

const says = (content: string) => ({ type: 'ws.message', connection_id: 'ada', content })
const open_door = { tool: 'open_door', input: { door: 'front' } }

test('opens the door and says so', async () => {
  const scope = await testScope(greeter, { model: [open_door, 'Come in!'] })
  const ended = await scope.send(says('Please open the front door'))
  expect(ended).toMatchObject({ status: 'completed', outcome: { by: 'turn', result: { text: 'Come in!' } } })
  expect(await scope.calls()).toMatchObject([{ tool: 'open_door', input: { door: 'front' }, status: 'ok' }])
  expect(await scope.replies()).toEqual(['Come in!'])
  expect(scope.model.requests[0]?.text).toContain('Please open the front door')
})

test('asks the model again a minute after a failure', async () => {
  const settings = { retry: { backoff_ms: 60_000 } }
  const scope = await testScope(greeter, { settings, model: [new Error('the model broke'), 'Hello!'] })
  const id = await scope.post(says('Hello'))
  await vi.waitFor(async () => expect(await scope.log('event-retried')).toHaveLength(1), { timeout: 20_000 })
  await scope.advance(120_000)
  expect(await scope.outcome(id)).toMatchObject({ status: 'completed', attempts: 2 })
})

test('keeps what it was sent when it is killed', async () => {
  const overlap = { debounce: { quiet_ms: 30_000, max_ms: 60_000 } }
  const scope = await testScope(greeter, { model: ['Hello!'], settings: { overlap } })
  const id = await scope.post(says('Hello'))
  await scope.kill()
  await scope.advance(30_000)
  expect(await scope.outcome(id)).toMatchObject({ status: 'completed' })
})
