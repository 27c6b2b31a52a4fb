import { expect, test } from 'vitest'
import { Allowed } from '../../../src/features/one-url/scope/allowed.ts'

test('an approved call passes once, in whatever order its arguments are written', () => {
  const kept = new Map<string, unknown>()
  const database = { read: (key: string, otherwise: unknown) => kept.get(key) ?? otherwise } as never
  const unit = { write: (key: string, value: unknown) => kept.set(key, value) } as never
  const allowed = new Allowed(database)
  allowed.add(unit, 'caller.pay', { to: 'bob', amount: 5 })
  expect(allowed.take(unit, 'caller.pay', { amount: 6, to: 'bob' })).toBe(false)
  expect(allowed.take(unit, 'caller.call', { amount: 5, to: 'bob' })).toBe(false)
  expect(allowed.take(unit, 'caller.pay', { amount: 5, to: 'bob' })).toBe(true)
  expect(allowed.take(unit, 'caller.pay', { to: 'bob', amount: 5 })).toBe(false)
})
