import { describe, expect, test } from 'vitest'
import { rank } from '../../../../src/skills/bulletin/bulletin.ts'
import { deployManifest } from '../deploy-manifest.ts'

describe('a tie', () => {
  const skill = (id: string, changes: Record<string, unknown> = {}) => ({ manifest: deployManifest({ id, ...changes }) })
  const idsOf = (skills: { manifest: { id: string } }[]) => skills.map(({ manifest }) => manifest.id)
  const a = skill('a', { 'effects.external': ['x'] })
  const b = skill('b', { 'effects.external': ['x', 'y'] })
  const c = skill('c', { 'effects.external': ['z', 'z'] })

  test('is broken by what reaches most of the goal, then by what usually follows, then by the id', () => {
    expect(idsOf(rank([a, b, c], { unmet_postconditions: ['x', 'y'] }))).toEqual(['b', 'a', 'c'])
    const prior = new Map([['c', 2]])
    expect(idsOf(rank([b, a, c], { unmet_postconditions: ['x', 'z'], transition_prior: prior }))).toEqual(['c', 'a', 'b'])
    expect(idsOf(rank([c, b, a], { unmet_postconditions: [] }))).toEqual(['a', 'b', 'c'])
  })
})
