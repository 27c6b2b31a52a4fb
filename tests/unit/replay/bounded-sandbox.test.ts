import { expect, test } from 'vitest'
import { unboundedComputing, type Computing } from '../../../src/base/computing.ts'
import { BoundedSandbox } from '../../../src/features/replay/bounded-sandbox.ts'
import { Unrecorded } from '../../../src/features/replay/report.ts'
import { FUEL_PER_RUN } from '../../../src/reflexes/decide.ts'
import type { Sandbox } from '../../../src/reflexes/sandbox.ts'

test('a replay runs a program no more that a limit stopped three times, but runs others', () => {
  const ran: string[] = []
  const sandbox: Sandbox = {
    run: ({ hash }) => {
      ran.push(hash)
      return { value: null, reason: hash === 'loops' ? 'limit' : 'null', error: null, fuel: 1, duration_us: 0 }
    },
    dispose: () => {},
  }
  const bounded = new BoundedSandbox(sandbox, unboundedComputing())
  const run = (hash: string) => bounded.run({ hash, code: '' }, {})
  for (let time = 0; time < 3; time += 1) run('loops')
  expect(() => run('loops')).toThrow(Unrecorded)
  for (let time = 0; time < 4; time += 1) expect(run('other').reason).toBe('null')
  expect(ran).toEqual(['loops', 'loops', 'loops', 'other', 'other', 'other', 'other'])
})

test('a replay computes within the budget of its key: a run costs its fuel and a constant', () => {
  const spent: number[] = []
  const computing = { left: 1, spend: (fuel: number) => void spent.push(fuel) } as unknown as Computing & { left: number }
  const ended = { value: null, reason: 'null' as const, error: null, fuel: 40, duration_us: 0 }
  const bounded = new BoundedSandbox({ run: () => ended, dispose: () => {} }, computing)
  expect(bounded.run({ hash: 'a', code: '' }, {})).toBe(ended)
  expect(spent).toEqual([40 + FUEL_PER_RUN])
  computing.left = 0
  expect(() => bounded.run({ hash: 'a', code: '' }, {})).toThrow('the key has used up what it may compute in a minute')
  expect(spent).toHaveLength(1)
})
