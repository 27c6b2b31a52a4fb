import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cuesOf, maximumScore, scoreOf, tauOf } from '../../../../src/skills/bulletin/score.ts'
import { holdsKeyword, tokenText, tokensOf } from '../../../../src/skills/manifest/names.ts'
import { deployManifest } from '../deploy-manifest.ts'
import { assertProperty } from '../../../support/property.ts'

const manifest = deployManifest({ 'activation.entity_types': ['app'], 'activation.score_weights.entity_type': 0.5 })
const said = (changes: Partial<Parameters<typeof cuesOf>[0]>) => cuesOf({ text: '', goal_labels: [], entity_types: [], ...changes })

describe('a score', () => {
  test('sums the weights of the cues that hit and says which', () => {
    const cues = said({ text: 'Please RELEASE it', goal_labels: ['Deploy', 'other'] })
    expect(scoreOf(manifest, cues, true)).toEqual({
      score: 5.5,
      components: [
        { name: 'goal_label', weight: 3, hit: true, matched: ['deploy'] },
        { name: 'keyword_hit', weight: 1, hit: true, matched: ['release'] },
        { name: 'entity_type', weight: 0.5, hit: false, matched: [] },
        { name: 'recent_success', weight: 1.5, hit: true, matched: [] },
      ],
    })
  })

  test('counts a cue once, however often it hits', () => {
    expect(scoreOf(manifest, said({ text: 'deploy deploy release' }), false).score).toBe(1)
  })

  test('is at most what the cues that there are can score', () => {
    expect(maximumScore(manifest)).toBe(6)
    expect(maximumScore(deployManifest({ 'activation.goal_labels': [] }))).toBe(2.5)
  })

  test('has the threshold of the manifest, else a share of the most it can be', () => {
    expect(tauOf(manifest)).toBe(3.5)
    const without = deployManifest({ 'activation.tau': undefined })
    expect(tauOf(without)).toBeCloseTo(0.85 * 5.5)
    expect(tauOf(without, 0.5)).toBe(2.75)
  })

  test('never falls with one more hit, and never exceeds the most it can be', () => {
    const weight = fc.double({ min: 0, max: 1000, noNaN: true })
    const words = fc.subarray(['deploy', 'appservice', 'release', 'app', 'x'])
    const arbitrary = fc.record({
      weights: fc.tuple(weight, weight, weight, weight),
      text: words,
      goals: words,
      entities: words,
      recent: fc.boolean(),
    })
    assertProperty(
      'skills/bulletin/score: adding a word',
      fc.property(arbitrary, words, ({ weights, text, goals, entities, recent }, more) => {
        const [goal_label, keyword_hit, entity_type, recent_success] = weights
        const skill = deployManifest({
          'activation.entity_types': ['app'],
          'activation.score_weights': { goal_label, keyword_hit, entity_type, recent_success },
        })
        const before = scoreOf(skill, said({ text: text.join(' '), goal_labels: goals, entity_types: entities }), recent).score
        const cues = said({ text: [...text, ...more].join(' '), goal_labels: [...goals, ...more], entity_types: [...entities, ...more] })
        const after = scoreOf(skill, cues, true).score
        expect(after).toBeGreaterThanOrEqual(before)
        expect(after).toBeLessThanOrEqual(maximumScore(skill))
      }),
    )
  })
})

describe('a keyword', () => {
  const stands = (keyword: string, text: string) => holdsKeyword(tokenText(text), tokensOf(keyword))

  test.each([
    ['deploy', 'DEPLOY now'],
    ['push image', 'Push-Image, please'],
    ['push image', 'push push image'],
    ['straße', 'in der STRASSE'],
    ['ＤＥＰＬＯＹ', 'deploy'],
    ['部署', '请部署到 staging'],
    ['größe', 'die Größe'],
  ])('%s stands in "%s"', (keyword, text) => {
    expect(stands(keyword, text)).toBe(true)
  })

  test.each([
    ['deploy', 'redeploy deployed'],
    ['push image', 'push the image'],
    ['push image', 'image push'],
    ['a', ''],
    ['', 'a'],
  ])('%s does not stand in "%s"', (keyword, text) => {
    expect(stands(keyword, text)).toBe(false)
  })

  test('is found by words as by a plain search', () => {
    const words = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 12 })
    assertProperty(
      'skills/bulletin/score: adding a keyword',
      fc.property(words, fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 3 }), (text, keyword) => {
        expect(stands(keyword.join(' '), text.join('\n'))).toBe(` ${text.join(' ')} `.includes(` ${keyword.join(' ')} `))
      }),
    )
  })
})
