import { describe, expect, test } from 'vitest'
import { rank } from '../../../../src/skills/bulletin/bulletin.ts'
import { transitionPrior } from '../../../../src/skills/bulletin/transitions.ts'
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

  test('is broken by the traces that a skill was mined from: what came before it was the last skill, or its last tool', () => {
    const build = skill('build', { 'plan.steps.2.tool': 'push' })
    const deploy = skill('deploy', { provenance: { after: { 'skill:build': 2, push: 3, other: 9 } } })
    const skills = [a, build, deploy]
    const priorAfter = (last: string | null) =>
      transitionPrior(new Map([['a', 4]]), { last, manifests: skills.map(({ manifest }) => manifest) })
    expect([...priorAfter('build')]).toEqual([
      ['a', 4],
      ['deploy', 5],
    ])
    expect([...priorAfter('gone')]).toEqual([['a', 4]])
    expect([...priorAfter(null)]).toEqual([['a', 4]])
    const ranked = rank(skills, { unmet_postconditions: [], transition_prior: priorAfter('build') })
    expect(idsOf(ranked)).toEqual(['deploy', 'a', 'build'])
  })
})
