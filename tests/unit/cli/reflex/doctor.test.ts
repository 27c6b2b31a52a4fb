import { expect, test } from 'vitest'
import { checksOf, scopeBudgetsCheck, toolCallsCheck, type DoctorHealth } from '../../../../cli/reflex/doctor/checks.ts'

test('doctor names a tool of whose recent calls half have failed', () => {
  const checked = toolCallsCheck({ ended: { lookup: 30, refund: 10, note: 7 }, failed: { lookup: 28, refund: 4 } })
  expect(checked).toMatchObject([{ name: 'tools', level: 'warning', detail: 'failed within 15 minutes: 28 of 30 calls of lookup' }])
  expect(checked[0]?.hint).toContain('reflex trace list --status partial')
})

test('doctor takes single failures for expected, and names no tool', () => {
  const checked = toolCallsCheck({ ended: { lookup: 2, refund: 40 }, failed: { lookup: 2, refund: 3 } })
  expect(checked).toEqual([{ name: 'tools', level: 'ok', detail: '42 calls within 15 minutes', hint: null }])
})

const part = { ok: true, duration_ms: 1, error: null }
const health: DoctorHealth = {
  database: part,
  queue: part,
  inboxes: null,
  parked: null,
  dead_letters: null,
  retention: null,
  model: 'a-model',
  model_error: null,
  agents: [],
}
const calls = {
  status: 'failing' as const,
  last_answer_at: null,
  failing_since: '2026-11-22T05:00:00.000Z',
  failures: 1,
  scopes_failing: 1,
  asks_at: null,
  error: 'HTTP 401',
}

test('doctor names the secret and the dead letters where the model refuses, and who waits where it is away', () => {
  const hint = (scopes_waiting: number) =>
    checksOf({ ...health, model_calls: { ...calls, scopes_waiting } }, { sent: 0, received: 1 }).find(({ name }) => name === 'model')?.hint
  expect(hint(0)).toContain('reflex dlq list')
  expect(hint(1)).toContain('reflex scope ask SCOPE')
})

test('doctor names the budgets in money that allow no call: of the deployment, of agents and of scopes', () => {
  const deployment = {
    time: '1970-01-01T00:00:00.000Z',
    bindings: { present: [], missing: [], unused: [] },
    schema_error: null,
    secrets: [],
    unpriced_budgets: [{ name: 'REFLEX_BUDGETS["scope:*"]', problem: 'the model m has no price' }],
  }
  const checks = checksOf({ ...health, deployment }, { sent: 0, received: 1 }).filter(({ name }) => name === 'budget')
  expect(checks).toMatchObject([{ level: 'warning', detail: 'REFLEX_BUDGETS["scope:*"]: the model m has no price' }])
  const hidden = { ...deployment, secrets: null, unpriced_budgets: null }
  expect(checksOf({ ...health, deployment: hidden }, { sent: 0, received: 1 }).filter(({ name }) => name === 'budget')).toEqual([])
  const scopes = [
    { scope: 'shop/1', budget_problem: null },
    { scope: 'shop/2', budget_problem: 'the model m has no price' },
  ]
  expect(scopeBudgetsCheck(scopes)).toMatchObject([{ level: 'warning', detail: 'the scope shop/2: the model m has no price' }])
})

test('doctor warns of a variable that nothing reads, and does not fail for it', () => {
  const deployment = {
    time: '1970-01-01T00:00:00.000Z',
    bindings: { present: [], missing: [], unused: [] },
    schema_error: null,
    secrets: [],
    unknown_variables: [{ name: 'REFLEX_EVENT_BYTES', nearest: 'REFLEX_EVENTS_BYTES' }],
  }
  const checks = checksOf({ ...health, deployment }, { sent: 0, received: 1 })
  expect(checks.filter(({ name }) => name === 'variable')).toMatchObject([
    { level: 'warning', detail: expect.stringMatching(/^REFLEX_EVENT_BYTES is set.* REFLEX_EVENTS_BYTES$/) },
  ])
})
