import { expect, test } from 'vitest'
import { toolCallsCheck } from '../../../../cli/reflex/doctor/checks.ts'

test('doctor names a tool of whose recent calls half have failed', () => {
  const checked = toolCallsCheck({ ended: { lookup: 30, refund: 10, note: 7 }, failed: { lookup: 28, refund: 4 } })
  expect(checked).toMatchObject([{ name: 'tools', level: 'warning', detail: 'failed within 15 minutes: 28 of 30 calls of lookup' }])
  expect(checked[0]?.hint).toContain('reflex trace list --status partial')
})

test('doctor takes single failures for expected, and names no tool', () => {
  const checked = toolCallsCheck({ ended: { lookup: 2, refund: 40 }, failed: { lookup: 2, refund: 3 } })
  expect(checked).toEqual([{ name: 'tools', level: 'ok', detail: '42 calls within 15 minutes', hint: null }])
})
