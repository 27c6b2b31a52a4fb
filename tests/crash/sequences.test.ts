import { expect, test } from 'vitest'
import { live, type Place } from '../support/crash-at-write.ts'
import { call, scopePath } from '../support/http.ts'
import { did, write } from '../support/reflex-chain.ts'
import { entriesOf, freshScope, note, stubOf, until } from '../support/scopes.ts'

const CODE = `return { action_type: 'sequence', acts: [
  { action_type: 'call_tool', tool: 'TOOL', args: { text: context.event.text } },
  { action_type: 'set_scratch', key: 'seen', value: null, uses: [{ at: '/value', output: 0, path: '/did' }] },
  { action_type: 'call_tool', tool: 'TOOL', args: { text: 'then' } },
  { action_type: 'reply', parts: ['did ', { output: 2, path: '/did' }] },
] }`

/** The same acts, of which the last ones are in a branch by what the first one returned. */
const BRANCHED = `return { action_type: 'sequence', acts: [
  { action_type: 'call_tool', tool: 'TOOL', args: { text: context.event.text } },
], branches: [
  { when: [{ output: 0, path: '/did', none_of: ['first'] }], acts: [{ action_type: 'reply', content: 'another branch' }] },
  { when: [{ output: 0, path: '/did', one_of: ['first'] }], acts: [
    { action_type: 'set_scratch', key: 'seen', value: null, uses: [{ at: '/value', output: 0, path: '/did' }] },
    { action_type: 'call_tool', tool: 'TOOL', args: { text: 'then' } },
    { action_type: 'reply', parts: ['did ', { output: 2, path: '/did' }] },
  ] },
] }`

/** `again`: the same after a person has retried its dead letter. */
type End = { writes: number; status: string; done: string[]; said: string[]; again?: { status: string; done: string[]; said: string[] } }

/** Sends an event until it is taken, and waits for its outcome. The scope dies at the place. */
async function run({ code, tool }: { code: string; tool: string }, place: Place | null): Promise<End> {
  const scope = freshScope()
  const { id } = await write(code.replaceAll('TOOL', tool))
  await stubOf(scope).configure({ reflexes: [{ id }] }, 'ops', 'key-of-ops')
  const life = await live(scope, place)
  const event = note(scope, 'first')
  await until(async () => (await call(scopePath(scope, '/events'), { json: event })).status === 202, 'the event is accepted')
  const record = () => call(scopePath(scope, `/events/${event.id}`))
  const settled = () => until(async () => (await record()).body?.ended_at as string | null | undefined, 'the event has its outcome')
  const ended = async () => {
    await settled()
    const { status } = (await record()).body as { status: string }
    const said = (await entriesOf(stubOf(scope), 'reply-sent')).map(({ content }) => content)
    return { status, done: did(scope), said }
  }
  // The scope may die after it has reported the outcome: its log is read once it has died.
  await settled()
  if (place) await until(async () => life.buried, 'it has died')
  const end = { writes: life.writes, ...(await ended()) }
  if (end.status !== 'dead_lettered') return end
  await stubOf(scope).reopen([event.id], 'ops')
  return { ...end, again: await ended() }
}

test.each([
  ['without keys', 'act', CODE],
  ['with keys', 'act_once', CODE],
  ['without keys, the last one in a branch,', 'act', BRANCHED],
  ['with keys, the last one in a branch,', 'act_once', BRANCHED],
])('a sequence of calls %s comes to one end wherever its scope dies', { timeout: 180_000 }, async (_, tool, code) => {
  const calm = await run({ code, tool }, null)
  expect(calm).toMatchObject({ status: 'completed', done: ['first', 'then'], said: ['did then'] })
  const faults: string[] = []
  const sides = ['before', 'after'] as const
  const waiting = Array.from({ length: calm.writes }, (__, index) => sides.map((side) => ({ at: index + 1, side }))).flat()
  const some = async (): Promise<void> => {
    for (let place = waiting.shift(); place; place = waiting.shift()) {
      const { status, done, said, again } = await run({ code, tool }, place)
      const where = `${place.side} write ${place.at}: ${status}, ${done.join()}, ${said.join()}`
      const is_done = status === 'completed' && said.join() === 'did then'
      // Without a key, an act that may have happened is not repeated.
      const is_unknown = tool === 'act' && status === 'dead_lettered' && said.length === 0
      if (!is_done && !is_unknown) faults.push(where)
      if (tool === 'act' && new Set(done).size < done.length) faults.push(`${where}: an act was repeated`)
      // A person's retry repeats the act that may have happened, and no other.
      const repeated = (again?.done.length ?? 0) - new Set(again?.done).size
      if (again && (again.status !== 'completed' || again.said.join() !== 'did then' || repeated > 1))
        faults.push(`${where}; retried: ${again.status}, ${again.done.join()}, ${again.said.join()}`)
    }
  }
  await Promise.all(Array.from({ length: 4 }, some))
  expect(faults).toEqual([])
})
