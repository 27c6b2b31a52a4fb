import { expect, test } from 'vitest'
import type { Activity } from '../../../src/features/traces/contract/activity.ts'
import { call, keyFor } from '../../support/http.ts'
import { packedNotes } from '../../support/packs.ts'
import { acting, calls } from '../../support/reflex-chain.ts'
import { note, sendAndSettle, until } from '../../support/scopes.ts'

const listed = async (query: Record<string, string>, key?: string): Promise<Activity[]> =>
  (await call(`/v1/activity?${new URLSearchParams(query).toString()}`, key === undefined ? {} : { key })).body.items

test('what was done is listed in words, with who decided and what it cost, and is searched', async () => {
  const { id, scope, stub } = await acting(`if (context.event.text === 'no') return null\n${calls('act')}`)
  await sendAndSettle(stub, note(scope, '203.0.113.9'))
  await sendAndSettle(stub, note(scope, 'much noise'))
  const all = await until(async () => {
    const found = await listed({ scope, kind: 'event' })
    return found.length === 2 && found.every(({ status }) => status === 'ok') ? found : null
  }, 'both are listed')
  const [noise, acted] = all
  expect(acted).toMatchObject({ words: 'called act 203.0.113.9', decided_by: { by: 'reflex', name: id }, cost_usd: 0 })
  expect(noise).toMatchObject({ words: 'left alone: no filter passed it', decided_by: { by: 'filter', name: null } })
  const ids = async (query: Record<string, string>) => (await listed({ scope, kind: 'event', ...query })).map(({ trace_id }) => trace_id)
  expect(await ids({ q: '203.0.113.9' })).toEqual([acted?.trace_id])
  expect(await ids({ q: id.toUpperCase() })).toEqual([acted?.trace_id])
  expect(await ids({ decider: 'filter' })).toEqual([noise?.trace_id])
  expect(await ids({ q: 'nothing has this' })).toEqual([])
  expect(await ids({ min_cost_usd: '0.01' })).toEqual([])
  expect(await ids({ until: '2020-01-01T00:00:00Z' })).toEqual([])
  // A search that finds nothing on a page continues on the next one.
  expect(await ids({ decider: 'reflex', limit: '1' })).toEqual([acted?.trace_id])
  expect(await listed({ scope }, await keyFor(['viewer'], ['other/*']))).toEqual([])
})

test('words of a settings change and of a call are of what was asked', async () => {
  const { scope } = await acting('return null')
  const found = await until(async () => {
    const items = await listed({ scope, kind: 'settings' })
    return items.length > 0 ? items : null
  }, 'the change is listed')
  expect(found[0]?.words).toBe('ops changed reflexes')
})

test('a search that finds nothing asks the scopes of a page or two, and names the place to continue', async () => {
  const root = crypto.randomUUID()
  const scopes = Array.from({ length: 130 }, (_, index) => `${root}/${index}`)
  for (const scope of scopes) await packedNotes(scope, 1, Date.now())
  const key = await keyFor(['viewer'], [`${root}/*`])
  const seek = async (more: string) => (await call(`/v1/activity?q=nothing+has+this&limit=50${more}`, { key })).body
  const first = await seek('')
  expect(first).toEqual({ items: [], next_cursor: expect.any(String) })
  expect(await seek(`&cursor=${first.next_cursor}`)).toEqual({ items: [], next_cursor: null })
})
