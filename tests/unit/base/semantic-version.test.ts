import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compareVersions, precedenceOf } from '../../../src/base/semantic-version.ts'
import { assertProperty } from '../../support/property.ts'

/** As semver.org ranks them, and then some. */
const RANKED = [
  '0.0.0',
  '0.0.9',
  '0.0.10',
  '0.9.0',
  '0.10.0',
  '1.0.0-0',
  '1.0.0-2',
  '1.0.0-11',
  '1.0.0-alpha',
  '1.0.0-alpha.1',
  '1.0.0-alpha.beta',
  '1.0.0-alpha-beta',
  '1.0.0-beta',
  '1.0.0-beta.2',
  '1.0.0-beta.11',
  '1.0.0-rc.1',
  '1.0.0',
  '1.0.0+build',
  '1.0.1-rc.1',
  '2.0.0',
  '9.0.0',
  '10.0.0',
  '99999999999999999999.0.0',
  '100000000000000000000.0.0',
]

describe('versions', () => {
  test('rank as semantic versions do', () => {
    expect(RANKED.toReversed().toSorted(compareVersions)).toEqual(RANKED)
  })

  test('of numbers rank as the numbers', () => {
    const numbers = fc.tuple(fc.nat(), fc.nat(), fc.nat())
    assertProperty(
      'base/semantic-version',
      fc.property(numbers, numbers, (one, other) => {
        const difference = one.map((number, index) => number - (other[index] ?? 0)).find((part) => part !== 0) ?? 0
        expect(Math.sign(compareVersions(one.join('.'), other.join('.')))).toBe(Math.sign(difference))
      }),
    )
  })

  test('that differ are never at the same place', () => {
    expect(precedenceOf('1.0.0+a')).not.toBe(precedenceOf('1.0.0+b'))
    expect(precedenceOf('1.0.0-01')).not.toBe(precedenceOf('1.0.0-1'))
    expect(compareVersions('1.0.0', '1.0.0')).toBe(0)
  })

  test.each(['', '1', '1.0', 'v1.0.0', '1.0.0-'])('%j is rejected', (text) => {
    expect(() => precedenceOf(text)).toThrow(/not a semantic version/)
  })
})
