import { expect, test } from 'vitest'
import { unboundedComputing } from '../../../src/base/computing.ts'
import { BoundedSandbox } from '../../../src/features/replay/bounded-sandbox.ts'
import { Unrecorded } from '../../../src/features/replay/report.ts'
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
  expect(run('other').reason).toBe('null')
  expect(ran).toEqual(['loops', 'loops', 'loops', 'other'])
})
