import { expect, test } from 'vitest'
import { ModelCalls, modelReport } from '../../../src/engine/turns/model-access.ts'
import type { Database, Unit } from '../../../src/kernel/unit.ts'

function scopeOf(before: Record<string, unknown> = {}) {
  const state = new Map(Object.entries(before))
  const database = { read: (key: string, absent: unknown) => state.get(key) ?? absent } as Pick<Database, 'read'>
  const at = (now: number) => ({ now, write: (key: string, value: unknown) => void state.set(key, value) }) as unknown as Unit
  return { calls: new ModelCalls(database), at, report: () => modelReport(database, false) }
}

test('an answer of a model that a scope chose is none of the deployment’s model', () => {
  const { calls, at, report } = scopeOf()
  calls.answered(at(1000), false)
  expect(report()).toMatchObject({ model_answered_at: 1000, model_served_at: 0 })
  calls.answered(at(2000), true)
  calls.answered(at(20_000), false)
  expect(report()).toMatchObject({ model_answered_at: 20_000, model_served_at: 2000 })
})

test('a failure keeps when the deployment’s model answered last', () => {
  const { calls, at, report } = scopeOf({ model_calls: { answered_at: 5, failing_since: null, failures: 0, error: null } })
  expect(report()).toMatchObject({ model_answered_at: 5, model_served_at: 0 })
  calls.answered(at(20_000), true)
  calls.failed(at(21_000), 'no', true)
  expect(report()).toMatchObject({ model_served_at: 20_000, model_answered_at: 20_000, model_lost: 1, model_failing_since: 21_000 })
})
