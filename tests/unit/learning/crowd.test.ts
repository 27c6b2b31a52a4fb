import { describe, expect, test } from 'vitest'
import { answerOf, crowdIn } from '../../../src/features/learning/run/ending.ts'

const from = (source: string, count: number) => Array.from({ length: count }, () => ({ source }))
const withRole = (source: string, count: number, role: 'admin' | 'operator') => from(source, count).map((one) => ({ ...one, role }))
const operators = { trusted_sources: ['role:operator'] }
const nobody = { trusted_sources: [] as string[] }

describe('a run whose decisions are about events of one sender', () => {
  test('names the sender, and what trusts it beside those that are trusted', () => {
    const trusted = { trusted_sources: ['key:other'] }
    expect(crowdIn([...from('key:admin', 50), ...from('key:other', 9)], trusted)).toEqual({
      sender: 'key:admin',
      n: 50,
      trusts: ['key:other', 'key:admin'],
    })
  })

  test('suggests no name that a request trusted by mistake, and keeps those of the setting', () => {
    const run = { trusted_sources: ['key:silent', 'key:wrong', 'key:other'], set_sources: ['key:silent'] }
    const episodes = [...from('key:admin', 50), ...from('key:other', 9)]
    expect(crowdIn(episodes, run)?.trusts).toEqual(['key:silent', 'key:other', 'key:admin'])
  })

  test.each([
    ['that is trusted', from('key:admin', 50), { trusted_sources: ['key:admin'] }],
    ['among many', [...from('a', 20), ...from('b', 20), ...from('c', 20)], nobody],
    ['of a few', from('key:admin', 39), nobody],
    ['whose key had a trusted role', withRole('key:a', 50, 'operator'), operators],
    ['whose key had a stronger role', withRole('key:a', 50, 'admin'), operators],
    ['that is the admin key', from('key:admin', 50), operators],
  ])('does not blame a sender %s', (_, episodes, run) => expect(crowdIn(episodes, run)).toBeUndefined())

  test.each([
    ['that has the name of a role', from('role:operator', 50), operators],
    ['whose key had the role for a part of them', [...withRole('key:a', 49, 'operator'), ...from('key:a', 1)], operators],
    ['whose key had a weaker role', withRole('key:a', 50, 'operator'), { trusted_sources: ['role:admin'] }],
  ])('blames a sender %s', (_, episodes, run) => expect(crowdIn(episodes, run)?.n).toBe(50))

  test('answers with the command that trusts the sender', () => {
    const crowd = { sender: 'key:admin', n: 60, trusts: ['key:admin'] }
    const episodes = { read: 60, used: 60, asked_again: 0, skipped: [], from: null, to: null, crowd }
    const answer = answerOf({ scope: 'app/one', candidates: [], rejected: [], episodes } as never)
    expect(answer).toContain('60 of 60 decisions are about events of one sender, key:admin')
    expect(answer).toContain(`reflex scope set app/one 'learning={"trusted_sources":["key:admin"]}'`)
  })
})
