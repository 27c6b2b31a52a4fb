import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ContextView } from '../../../src/contract/scope.ts'
import { ARCHIVED } from '../../support/archive-bucket.ts'
import { call, problem, scopePath } from '../../support/http.ts'
import { createVersion } from '../../support/reflexes.ts'
import { age, evict, freshScope, hurry, logOf, note, send, stubOf, textOf, until } from '../../support/scopes.ts'
import { behaviours } from '../../support/test-agents.ts'
import { assertProperty } from '../../support/property.ts'

type Stub = ReturnType<typeof stubOf>
type Seen = { at: number; context: ContextView }

const REFLEX = `function reflex({ event, tick }) {
  if (event.text === 'consumed') return { action_type: 'reply', content: 'yes' }
  if (event.text === 'noted') return { action_type: 'set_scratch', key: 'tick', value: tick }
  if (event.text === 'by a tool') return { action_type: 'call_tool', tool: 'act', args: { text: 'x' } }
  return null
}`

/** A scope of which every kind of event that changes the context can come. */
async function prepared(kind?: string): Promise<{ scope: string; stub: Stub }> {
  const scope = freshScope(kind)
  const stub = stubOf(scope)
  const { id } = await createVersion({ code: REFLEX })
  await stub.configure({ context_limit: 20, retry: { max_attempts: 2 }, reflexes: [{ id }] }, 'a test')
  behaviours.set(scope, async (context, deps) => {
    const text = textOf(context.events.at(-1)!)
    context.scratch['last'] = text
    if (text === 'throws') throw new Error('no')
    if (text === 'waits') await deps.call('act', { text: 'x' })
    return text === 'acts' || text === 'waits' ? { done: true } : null
  })
  return { scope, stub }
}

const steps: Record<string, (scope: string, stub: Stub) => Promise<unknown>> = {
  kept: (scope, stub) => send(stub, note(scope, 'kept'), note(scope, 'kept')),
  acts: (scope, stub) => send(stub, note(scope, 'acts')),
  waits: (scope, stub) => send(stub, note(scope, 'waits')).then(() => send(stub, note(scope, 'during the turn'))),
  filtered: (scope, stub) => send(stub, note(scope, 'noise'), note(scope, 'kept')),
  'a broken filter': (scope, stub) => send(stub, note(scope, 'bad filter'), note(scope, 'kept')),
  'a failing turn': (scope, stub) => send(stub, note(scope, 'throws')),
  'by reflexes': (scope, stub) => send(stub, note(scope, 'consumed'), note(scope, 'noted'), note(scope, 'by a tool')),
  'very many': (scope, stub) => send(stub, ...Array.from({ length: 130 }, () => note(scope, 'kept'))),
  pulled: async (scope, stub) => {
    await stub.configure({ consumer: 'pull' }, 'a test')
    await send(stub, note(scope, 'kept'))
    await stub.configure({ consumer: 'turn' }, 'a test')
  },
  evicted: (_scope, stub) => evict(stub),
}

/** The context once nothing is open, with the place of the log's last entry. */
async function settled(stub: Stub): Promise<Seen> {
  await until(async () => {
    const { inbox } = await stub.state()
    if (inbox.pending + inbox.processing === 0) return true
    await hurry(stub)
    return false
  }, 'everything has its outcome')
  return until(async () => {
    const { last_seq: at } = await stub.state()
    const context = await stub.context(1000)
    return (await stub.state()).last_seq === at && { at, context }
  }, 'nothing changes')
}

async function differences(scope: string, seen: readonly Seen[]): Promise<unknown[]> {
  const found: unknown[] = []
  for (const { at, context } of seen) {
    const { status, body, text } = await call(scopePath(scope, `/context?at=${at}&limit=1000`))
    if (status !== 200) found.push({ at, text })
    else if (JSON.stringify(body) !== JSON.stringify(context)) found.push({ at, live: context, rebuilt: body })
  }
  return found
}

test('the context at an entry of the log is as it was then, whatever has happened', async () => {
  const runs = fc.array(fc.constantFrom(...Object.keys(steps)), { minLength: 3, maxLength: 7 })
  await assertProperty(
    'scope/past-context',
    fc.asyncProperty(runs, async (names) => {
      const { scope, stub } = await prepared()
      const seen: Seen[] = []
      for (const name of names) {
        await steps[name]!(scope, stub)
        seen.push(await settled(stub))
      }
      await evict(stub)
      expect(await differences(scope, seen)).toEqual([])
    }),
    { numRuns: 6, examples: [[Object.keys(steps)], [['very many', 'acts', 'very many', 'kept', 'a failing turn']]] },
  )
})

test('it is rebuilt from the archive, page by page, and refused once nothing has it', async () => {
  const { scope, stub } = await prepared(ARCHIVED)
  for (const name of ['kept', 'by reflexes', 'kept']) await steps[name]!(scope, stub)
  const seen = await settled(stub)
  await until(async () => (await stub.state()).outbox.waiting === 0, 'D1 has everything')
  await age(stub, 20)
  await until(async () => (await logOf(stub)).length > 0 && (await stub.state()).archive!.files > 1, 'everything is archived')
  expect(await differences(scope, [seen])).toEqual([])
  const { body: newest } = await call(scopePath(scope, `/context?at=${seen.at}&limit=2`))
  expect(newest).toMatchObject({ count: seen.context.count, events: seen.context.events.slice(-2) })
  const { body: older } = await call(scopePath(scope, `/context?at=${seen.at}&limit=1000&cursor=${newest.next_cursor}`))
  expect(older).toMatchObject({ events: seen.context.events.slice(0, -2), next_cursor: null })
  expect(await call(scopePath(scope, '/context?at=100000'))).toMatchObject(problem(404))
  expect(await call(scopePath(scope, '/context?at=0'))).toMatchObject({ status: 200, body: { events: [], count: 0, scratch: {} } })

  const { scope: other, stub: plain } = await prepared()
  await steps['kept']!(other, plain)
  const { at } = await settled(plain)
  await until(async () => (await plain.state()).outbox.waiting === 0, 'D1 has everything')
  await age(plain, 20)
  expect(await call(scopePath(other, `/context?at=${at}`))).toMatchObject({
    status: 404,
    body: { detail: expect.stringContaining('no longer kept') },
  })
})
