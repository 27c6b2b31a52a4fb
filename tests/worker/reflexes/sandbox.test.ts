import { describe, expect, test } from 'vitest'
import { isolateSandbox } from '../../../src/reflexes/isolate-sandbox.ts'
import { sampleContext } from '../../../src/reflexes/reflex-context.ts'
import { sandboxLimits } from '../../../src/reflexes/sandbox.ts'
import { hostilePrograms } from '../../support/hostile-programs.ts'
import { bystander, BYSTANDER_FUEL, program, reflexOf } from '../../support/reflex-programs.ts'

const sandbox = isolateSandbox()
const run = (code: string) => sandbox.run(program(code), sampleContext)

describe('the sandbox inside workerd', () => {
  test('is one for the isolate', () => {
    expect(isolateSandbox()).toBe(sandbox)
  })

  test('takes the same fuel as anywhere', () => {
    expect(sandbox.run(bystander, sampleContext)).toMatchObject({ value: { content: 'seen: 1' }, reason: 'fired', fuel: BYSTANDER_FUEL })
  })

  test.each(hostilePrograms)('$name is contained, and the next reflex runs', ({ code, reason, error }) => {
    const first = run(code)
    expect(first.reason).toBe(reason)
    // On a busy machine the clock may have been first.
    expect(first.error ?? '').toMatch(first.error?.endsWith(' ms') ? /^it was stopped after 100 ms$/ : error)
    expect(first.fuel).toBeLessThanOrEqual(sandboxLimits.compile_fuel)
    expect(sandbox.run(bystander, sampleContext)).toMatchObject({ value: { content: 'seen: 1' }, reason: 'fired', fuel: BYSTANDER_FUEL })
  })

  test('100 reflexes leave no trace in each other', () => {
    const counting = (number: number) =>
      reflexOf(`globalThis.constructor; return { number: ${number}, seen: Object.keys(globalThis).length }`)
    const runs = Array.from({ length: 200 }, (_, index) => sandbox.run(counting(index % 100), sampleContext).value)
    expect(runs).toEqual(Array.from({ length: 200 }, (_, index) => ({ number: index % 100, seen: 0 })))
  })
})
