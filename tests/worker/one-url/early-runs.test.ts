import { expect, test } from 'vitest'
import { call } from '../../support/http.ts'
import { decided, ended, histories, batches, learnerOf } from '../../support/learning.ts'
import { entriesOf, freshScope, runAlarm, stubOf, until } from '../../support/scopes.ts'

/** Asks the same again and again, some at a time. */
async function ask(scope: string, times: number): Promise<void> {
  const json = { model: 'm', messages: [{ role: 'user', content: 'disk trouble' }] }
  const one = () => call('/v1/openai/chat/completions', { json, headers: { 'x-reflex-scope': scope } })
  for (let asked = 0; asked < times; asked += 20) await Promise.all(Array.from({ length: Math.min(20, times - asked) }, one))
}
const settingsOf = async (scope: string) => (await stubOf(scope).state()).settings
const runsOf = async (scope: string) =>
  (await call(`/v1/learn/runs?scope=${encodeURIComponent(scope)}`)).body.items as { run_id: string; by: string }[]

test('a scope that nobody has set learns from its callers in shadow mode, until somebody sets how', { timeout: 60_000 }, async () => {
  const scope = freshScope('answered')
  histories.set(scope, (after) => batches(decided(240), after))
  await ask(scope, 199)
  expect((await settingsOf(scope)).learning.mode).toBe('off')
  expect(await stubOf(scope).teachers()).toEqual([])
  await ask(scope, 1)
  const [run] = await until(async () => {
    await runAlarm(learnerOf(scope))
    const runs = await runsOf(scope)
    return runs.length > 0 && runs
  }, 'a run has started')
  expect(run).toMatchObject({ by: 'one url' })
  expect((await settingsOf(scope)).learning).toMatchObject({ mode: 'shadow', trusted_sources: [] })
  const [changed] = await entriesOf(stubOf(scope), 'settings-changed')
  expect(changed).toMatchObject({ by: 'one url', patch: { learning: { mode: 'shadow' } } })
  expect(await stubOf(scope).teachers()).toEqual(['key:admin'])
  expect(await ended(scope, run?.run_id ?? '')).toMatchObject({ status: 'done', episodes: { asked_again: 0 } })
  await stubOf(scope).configure({ learning: { mode: 'auto' } }, 'a test')
  expect(await stubOf(scope).teachers()).toEqual([])
})

test('a scope that learns nothing by its setting stays so', { timeout: 60_000 }, async () => {
  const scope = freshScope('answered')
  await stubOf(scope).configure({ learning: { mode: 'off' } }, 'a test')
  await ask(scope, 201)
  expect((await settingsOf(scope)).learning.mode).toBe('off')
  expect(await stubOf(scope).teachers()).toEqual([])
  expect(await runsOf(scope)).toEqual([])
})
