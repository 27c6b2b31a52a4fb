import { expect, test } from 'vitest'
import type { LogEntry } from '../../../src/contract/log-entry.ts'
import { FUEL_PER_BATCH, FUEL_PER_RUN } from '../../../src/reflexes/decide.ts'
import { fuelLeft } from '../../../src/features/replay/recorded-chain.ts'

type Step = Extract<LogEntry, { kind: 'reflex-fired' | 'reflex-passed' }>
const passed = (fuel: number, reason: string | null = null) => ({ kind: 'reflex-passed', fuel, reason }) as Step

test('a replay has the fuel with which the recorded runs began, so that the same step is passed over', () => {
  const steps = [passed(8000), passed(0, 'missing'), passed(9000), passed(0, 'fuel')]
  expect(fuelLeft(steps)).toBe(8000 + 9000 + 2 * FUEL_PER_RUN)
  expect(fuelLeft(steps.slice(0, 3))).toBe(FUEL_PER_BATCH)
})
