import { expect, test } from 'vitest'
import { withDefaults, type Event } from '../../../../src/core/event.ts'
import { agreementsNeeded } from '../../../../src/reflexes/promotion.ts'
import { call } from '../../../support/http.ts'
import { write } from '../../../support/reflex-chain.ts'
import { crash, entriesOf, evict, freshScope, sendAndSettle, stubOf } from '../../../support/scopes.ts'

const talk = async () => {
  const scope = freshScope('chat')
  await stubOf(scope).configure({ learning: { min_agreement: 0.95 } }, 'ops')
  const said = (content: string): Event =>
    withDefaults({ type: 'ws.message', connection_id: 'alice', content }, { now: Date.now(), source: 'test', scope }) as Event
  const ask = async (content: string) => (await sendAndSettle(stubOf(scope), said(content)))[0]?.outcome
  return { scope, ask }
}
const replies = async (scope: string) => (await entriesOf(stubOf(scope), 'reply-sent')).map(({ content }) => content)
/** Audits ask the model about the first acts after a proof, but start no turn. */
const turns = async (scope: string) => (await stubOf(scope).state()).counters.turns

test.each([
  ['', async () => {}],
  [', although the scope was evicted meanwhile', async (scope: string) => evict(stubOf(scope))],
  [', although the scope died meanwhile', async (scope: string) => void (await crash(scope))],
])('a question that is asked again and again is answered by a reflex in the end%s', async (_, meanwhile) => {
  const { scope, ask } = await talk()
  expect(await ask('What are reflexes?')).toMatchObject({ by: 'turn' })
  expect((await stubOf(scope).state()).settings.reflexes).toEqual([])
  expect(await ask(' What are  reflexes?')).toMatchObject({ by: 'turn' })
  const called = (await entriesOf(stubOf(scope), 'effect-ended')).map(({ tool, status }) => `${tool} ${status}`)
  expect(called).toEqual(['test_reflex ok', 'write_reflex ok', 'update_agent_config ok'])
  const [reference] = (await stubOf(scope).state()).settings.reflexes
  expect(reference?.id).toMatch(/^chat-[0-9a-f]{8}-[0-9a-f]{8}$/)

  for (let asked = 0; asked < agreementsNeeded(0.95); asked += 1) {
    expect(await ask('What are reflexes?')).toMatchObject({ by: 'turn' })
    if (asked === 9) await meanwhile(scope)
  }
  expect(await entriesOf(stubOf(scope), 'reflex-moved')).toMatchObject([{ reflex_id: reference?.id, from: 'shadow', to: 'active' }])
  const [started, before] = [await turns(scope), await replies(scope)]
  expect(await ask('What are reflexes?')).toMatchObject({ by: 'reflex', reflex_id: reference?.id, version: 1 })
  expect(await turns(scope)).toBe(started)
  expect((await replies(scope)).slice(before.length)).toEqual([before.at(-1)])
})

test('the next turn does not answer again a question that the reflex answered, but answers other questions', async () => {
  const { scope, ask } = await talk()
  for (let asked = 0; asked < agreementsNeeded(0.95) + 3; asked += 1) await ask('Who?')
  const before = (await replies(scope)).length
  expect(await ask('And why?')).toMatchObject({ by: 'turn' })
  const said = (await replies(scope)).slice(before)
  expect(said).toHaveLength(1)
  expect(said[0]).toContain('You wrote "And why?"')
  expect((await stubOf(scope).state()).settings.reflexes).toHaveLength(1)
})

test('two questions are two reflexes in one chain, and another scope has its own', async () => {
  const { scope, ask } = await talk()
  for (const question of ['Who?', 'Who?', 'Why?', 'Why?']) await ask(question)
  const other = await talk()
  for (const question of ['Who?', 'Who?']) await other.ask(question)
  const chains = await Promise.all([scope, other.scope].map(async (name) => (await stubOf(name).state()).settings.reflexes))
  expect(chains.map((chain) => chain.length)).toEqual([2, 1])
  expect(new Set(chains.flat().map(({ id }) => id)).size).toBe(3)
  expect((await entriesOf(stubOf(other.scope), 'effect-ended')).map(({ output }) => output)).toContainEqual(
    expect.objectContaining({ written: true }),
  )
})

test('a scope that allows no tools has none written', async () => {
  const { scope, ask } = await talk()
  await stubOf(scope).configure({ tools: [] }, 'ops')
  for (let asked = 0; asked < 3; asked += 1) await ask('Who?')
  expect(await entriesOf(stubOf(scope), 'effect-started')).toEqual([])
})

test("a reflex's call of a tool for reflexes is compared by an evaluation", async () => {
  const { scope, ask } = await talk()
  const acts = (q: string) => `return { action_type: 'call_tool', tool: 'list_reflexes', args: { q: '${q}' } }`
  const { id } = await write(acts('who'))
  await stubOf(scope).configure({ reflexes: [{ id }] }, 'ops')
  expect(await ask('Who?')).toMatchObject({ by: 'reflex' })
  const evaluate = async (q: string) =>
    (await call(`/v1/reflexes/${(await write(acts(q))).id}/evaluate`, { json: { scope, window: '10m' } })).body
  expect(await evaluate('who')).toMatchObject({ fires: 1, agreement: { agreed: 1, disagreed: 0, not_compared: 0 } })
  expect(await evaluate('why')).toMatchObject({ fires: 1, agreement: { agreed: 0, disagreed: 1, not_compared: 0 } })
})
