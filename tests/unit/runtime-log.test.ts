import { expect, test } from 'vitest'
import { verdictOf } from '../../testing/runtime-log.ts'
import { part } from './agents/agent-fixtures.ts'

type Module = Parameters<typeof verdictOf>[0][number]
const file = (...states: string[]): Module =>
  part<Module>({
    ok: () => !states.includes('failed'),
    children: { allTests: () => states.map((state) => ({ result: () => ({ state }) })).values() },
  })

test('the verdict of a run counts its tests and files', () => {
  expect(verdictOf([file('passed', 'skipped'), file('passed')], 0)).toBe('PASSED: 2 tests in 2 files, 1 skipped')
  expect(verdictOf([file('passed')], 0)).toBe('PASSED: 1 test in 1 file')
  expect(verdictOf([file('passed', 'failed'), file('passed')], 1)).toBe('FAILED: 1 of 3 tests, in 1 of 2 files')
})

test('the verdict of a run whose tests passed is a failure where its exit code says so', () => {
  expect(verdictOf([file('passed')], 1)).toContain('FAILED: no test, but the run')
})
