import { describe, expect, test } from 'vitest'
import { call, scopePath } from '../support/http.ts'
import { batches, decided, ended, histories, learn, learnerOf, readTicket, resolved } from '../support/learning.ts'
import { scopeWith } from '../support/scope-with-remote-tools.ts'
import { evict, freshScope, inObject, runAlarm } from '../support/scopes.ts'

describe('a run that fails at a write', () => {
  /** The transaction number `at` is not made, or the work after it is not done. */
  const failAt = (scope: string, at: number, side: 'before' | 'after') =>
    inObject(learnerOf(scope) as never, ({ storage }) => {
      const transactionSync = storage.transactionSync.bind(storage)
      let writes = 0
      storage.transactionSync = (work) => {
        writes += 1
        if (writes === at && side === 'before') throw new Error('the disk is full')
        const result = transactionSync(work)
        if (writes === at) throw new Error('the disk is full')
        return result
      }
    })

  test.each([
    ['before', 'dies'],
    ['after', 'dies'],
    ['before', 'survives'],
    ['after', 'survives'],
  ] as const)('%s it comes to the same end, whose object %s', async (side, object) => {
    for (let at = 1; at <= 9; at += 1) {
      const scope = freshScope()
      histories.set(scope, (after) => batches(decided(400), after, 200))
      const { run_id } = (await learn(scope)).body
      await failAt(scope, at, side)
      await runAlarm(learnerOf(scope))
      if (object === 'dies') await evict(learnerOf(scope) as never)
      const run = await ended(scope, run_id)
      expect(run, `${side} ${at}`).toMatchObject({ status: 'done', found: 2, episodes: { read: 400 } })
      const listed = (await call(`/v1/reflexes?owner=${encodeURIComponent(`scope:${scope}`)}`)).body.items
      expect(listed.map(({ version }: { version: number }) => version)).toEqual([1, 1])
      expect((await call(scopePath(scope))).body.settings.reflexes).toHaveLength(2)
    }
  })
  test.each(['before', 'after'] as const)('%s it registers a mined skill once, with the report of its tests', async (side) => {
    for (let at = 1; at <= 7; at += 1) {
      const scope = await scopeWith({ http_tools: [readTicket] })
      histories.set(scope, (after) => batches(resolved(40), after, 20))
      const { run_id } = (await learn(scope, { kinds: ['skill'] })).body
      await failAt(scope, at, side)
      await runAlarm(learnerOf(scope))
      await evict(learnerOf(scope) as never)
      const run = await ended(scope, run_id)
      expect(run, `${side} ${at}`).toMatchObject({ status: 'done', found: 1, episodes: { read: 40 } })
      const [{ id }] = run.candidates
      expect((await call(`/v1/skills/${id}`)).body.versions).toMatchObject([{ version: '1.0.0', state: 'candidate' }])
      expect((await call(`/v1/skills/${id}@1.0.0/test`)).body).toMatchObject({ passed: true, by: 'learner' })
    }
  })
})
