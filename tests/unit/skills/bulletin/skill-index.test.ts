import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isCompatible } from '../../../../src/skills/manifest/compat.ts'
import type { Place } from '../../../../src/skills/manifest/compat.ts'
import type { SkillState } from '../../../../src/contract/skill.ts'
import type { Manifest } from '../../../../src/skills/manifest/manifest.ts'
import { cuesOf, scoreOf } from '../../../../src/skills/bulletin/score.ts'
import { byName, SkillIndex, type SkillQuery } from '../../../../src/skills/bulletin/skill-index.ts'
import { deployManifest } from '../deploy-manifest.ts'
import { assertProperty } from '../../../support/property.ts'

/** The reference result of the index. */
function scan(skills: readonly { manifest: Manifest; state: SkillState }[], situation: SkillQuery): Manifest[] {
  const cues = cuesOf(situation)
  return skills
    .filter(({ state, manifest }) => state === 'active' && isCompatible(manifest.compat, situation.compat))
    .map(({ manifest }) => manifest)
    .filter((manifest) => scoreOf(manifest, cues, false).components.some(({ hit }) => hit))
    .toSorted(byName)
}

const word = fc.constantFrom('deploy', 'Deploy', 'push image', 'release', 'image', 'roll back now', '部署')
const words = fc.array(word, { maxLength: 3 })
const skill = fc
  .record({
    id: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    version: fc.constantFrom('1.0.0', '1.1.0', '2.0.0'),
    state: fc.constantFrom<SkillState>('active', 'active', 'active', 'candidate', 'deprecated'),
    compat: fc.record(
      {
        env: fc.subarray(['staging', 'prod'], { minLength: 1 }),
        toolset: fc.constantFrom('v5', 'v6'),
        repo: fc.constantFrom('x', 'y'),
        project: fc.constantFrom('p', 'q'),
      },
      { requiredKeys: [] },
    ),
    goals: words,
    keywords: words,
    entities: words,
  })
  .map(({ id, version, state, compat, goals, keywords, entities }) => ({
    state,
    manifest: deployManifest({
      id,
      version,
      compat,
      'activation.goal_labels': goals,
      'activation.keywords_any': keywords,
      'activation.entity_types': entities,
    }),
  }))
const place: fc.Arbitrary<Place> = fc.record({
  env: fc.subarray(['staging', 'prod']),
  toolset: fc.option(fc.constantFrom('v5', 'v6')),
  repo: fc.option(fc.constantFrom('x', 'y')),
  project: fc.option(fc.constantFrom('p', 'q')),
})
const situation: fc.Arbitrary<SkillQuery> = fc.record({
  text: fc.array(fc.oneof(word, fc.constantFrom('push', 'an', 'roll', 'back', 'now')), { maxLength: 6 }).map((some) => some.join(' ')),
  goal_labels: words,
  entity_types: words,
  compat: place,
})

describe('an index of skills', () => {
  test('finds what a scan finds, in the order of names', () => {
    assertProperty(
      'skills/bulletin/skill-index',
      fc.property(
        fc.uniqueArray(skill, { maxLength: 12, selector: ({ manifest: { id, version } }) => `${id}@${version}` }),
        situation,
        (skills, situation) => {
          expect(new SkillIndex(skills).candidatesFor(cuesOf(situation), situation.compat)).toEqual(scan(skills, situation))
        },
      ),
      { numRuns: 500 },
    )
  })

  test('counts the active ones', () => {
    const skills = (['active', 'candidate', 'active', 'deprecated'] as const).map((state) => ({ state, manifest: deployManifest() }))
    expect(new SkillIndex(skills).size).toBe(2)
  })
})
