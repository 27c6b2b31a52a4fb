import type { z } from 'zod'
import { describe, expect, test } from 'vitest'
import { reflexes } from '../../../src/contract/lists/reflexes.ts'
import type { reflexItem } from '../../../src/contract/reflex.ts'

type Listed = z.infer<typeof reflexItem>
const state = reflexes.columns.find(({ title }) => title === 'State')
const shown = (one: Partial<Listed>) => {
  const item = { state: 'active', version: 2, acts: 2, ...one } as Listed
  return [state?.of(item), state && 'colour' in state ? state.colour(item) : null]
}

describe('the state of a reflex in a list', () => {
  test('is plain where the listed version acts', () => {
    expect(shown({})).toEqual(['active', 'green'])
  })

  test('says that an active reflex does not act, such as after the tools of its slow path changed', () => {
    expect(shown({ idle: { since: null, reason: 'the tools of the slow path changed' } })).toEqual(['active, does not act', 'yellow'])
  })

  test('says which version acts where the newest one is retired, and that none does', () => {
    expect(shown({ state: 'retired', acts: 1 })).toEqual(['retired, version 1 acts', 'green'])
    expect(shown({ state: 'retired', acts: null })).toEqual(['retired', 'dim'])
  })
})
