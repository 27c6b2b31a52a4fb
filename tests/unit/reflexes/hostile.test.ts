import { describe, expect, test } from 'vitest'
import { QuickJsSandbox } from '../../../src/reflexes/quickjs-sandbox.ts'
import { sampleContext } from '../../../src/reflexes/reflex-context.ts'
import { sandboxLimits } from '../../../src/reflexes/sandbox.ts'
import { hostilePrograms } from '../../support/hostile-programs.ts'
import { bystander, BYSTANDER_FUEL, program } from '../../support/reflex-programs.ts'
import { sandboxModule } from '../../support/sandbox-module.ts'

// Without a clock, as in production: the counting alone must do.
const sandbox = new QuickJsSandbox(sandboxModule, { now: () => 0 })
const unharmed = { value: { action_type: 'reply', content: 'seen: 1' }, reason: 'fired', error: null, fuel: BYSTANDER_FUEL, duration_us: 0 }

describe('hostile code', () => {
  test.each(hostilePrograms)('$name is contained, and the next reflex runs', ({ code, reason, error }) => {
    const first = sandbox.run(program(code), sampleContext)
    expect(first.reason).toBe(reason)
    expect(first.error ?? '').toMatch(error)
    expect(first.fuel).toBeLessThanOrEqual(sandboxLimits.compile_fuel)
    expect(sandbox.run(bystander, sampleContext)).toEqual(unharmed)
    expect(sandbox.run(program(code), sampleContext)).toEqual(first)
  })
})
