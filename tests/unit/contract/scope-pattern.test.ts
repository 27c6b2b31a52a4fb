import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { matchesScope, overlaps, prefixOf, scopePattern } from '../../../src/contract/principal.ts'
import { assertProperty } from '../../support/property.ts'

describe('a scope pattern', () => {
  test.each([
    ['*', 'anything/at.all', true],
    ['default', 'default', true],
    ['default', 'default2', false],
    ['default', 'Default', false],
    ['team-a/*', 'team-a/x', true],
    ['team-a/*', 'team-a/x/y', true],
    ['team-a/*', 'team-a', false],
    ['team-a/*', 'team-ab/x', false],
    ['team-a/*', 'x/team-a/x', false],
    ['*/prod', 'team-a/prod', true],
    ['*/prod', 'team-a/prod2', false],
    ['a*b*c', 'a-b-c', true],
    ['a*b*c', 'abc', true],
    ['a*b*c', 'acb', false],
    ['aba*aba', 'aba', false],
    ['aba*aba', 'ababa', false],
    ['aba*aba', 'abaaba', true],
    ['x*ab*b', 'xab', false],
    ['x*ab*b', 'xabb', true],
    ['*ab*ab*', 'xab', false],
    ['*ab*ab*', 'xabab', true],
    ['**', 'x', true],
    ['', 'x', false],
    ['a.c', 'abc', false],
  ])('%s on %s: %s', (pattern, scope, expected) => {
    expect(matchesScope(pattern, scope)).toBe(expected)
  })

  test.each([
    [`${'a'.repeat(127)}*`, true],
    ['a'.repeat(128), true],
    [`*${'a'.repeat(49)}`, true],
    [`*${'a'.repeat(50)}`, false],
    [`a*${'b'.repeat(60)}*`, false],
  ])('%s is allowed: %s, for D1 matches no longer one with a * within', (pattern, allowed) => {
    expect(scopePattern.safeParse(pattern).success).toBe(allowed)
  })

  test('agrees with the definition, on any pattern and scope', () => {
    const text = (letters: string[]) => fc.array(fc.constantFrom(...letters), { maxLength: 12 }).map((parts) => parts.join(''))
    assertProperty(
      'contract/scope-pattern: by its definition',
      fc.property(text(['a', 'b', '/', '*']), text(['a', 'b', '/']), (pattern, scope) => {
        expect(matchesScope(pattern, scope)).toBe(byDefinition(pattern, scope))
      }),
      { numRuns: 2000 },
    )
  })

  test('that is matched by another one, as text, is no wider', () => {
    const text = (letters: string[]) => fc.array(fc.constantFrom(...letters), { maxLength: 6 }).map((parts) => parts.join(''))
    assertProperty(
      'contract/scope-pattern: within another',
      fc.property(text(['a', 'b', '*']), text(['a', 'b', '*']), text(['a', 'b']), (outer, inner, scope) => {
        fc.pre(matchesScope(outer, inner) && matchesScope(inner, scope))
        expect(matchesScope(outer, scope)).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  test.each(['*', 'team-a/*', 'a:b@c.d_e-f/*/g'])('may read %s', (pattern) => {
    expect(scopePattern.safeParse(pattern).success).toBe(true)
  })

  test.each(['', 'a b', 'a?', 'é', 'a\n', '*'.repeat(129)])('may not read %j', (pattern) => {
    expect(scopePattern.safeParse(pattern).success).toBe(false)
  })
})

test.each([
  ['team-a/*', 'team-a/'],
  ['a*b*', 'a'],
  ['default', 'default'],
  ['*', ''],
])('all scopes that %s matches begin with %j', (pattern, prefix) => {
  expect(prefixOf(pattern)).toBe(prefix)
})

describe('two scope patterns overlap', () => {
  test.each([
    ['team-a/*', 'team-a/x', true],
    ['team-a/*', 'team-*', true],
    ['team-a/*', 'team-b/*', false],
    ['team-a/*', '*/prod', true],
    ['team-a', 'team-a', true],
    ['team-a', 'team-a/*', false],
    ['a*b', 'b*a', false],
    ['a*b', '*c*', true],
    ['*x', '*y', false],
    ['a*b', 'a*c', false],
    ['a*b', 'a*b', true],
    ['a*bc*d', 'a*cb*d', true],
    ['a*b*', 'a*c', true],
    ['a*', 'ab*c', true],
    ['abc*', 'a*b', true],
    ['*ab', '*b', true],
    ['*ab', '*bb', false],
    ['a*x', 'ab*yx', true],
    ['a*xz', 'ab*yx', false],
    ['*', 'anything', true],
  ])('%s and %s: %s', (left, right, expected) => {
    expect([overlaps(left, right), overlaps(right, left)]).toEqual([expected, expected])
  })

  test('wherever a scope is matched by both, and there alone', () => {
    const letters = ['a', 'b']
    const scopes = ['']
    for (let length = 0; length < 7; length++) {
      scopes.push(...scopes.filter((one) => one.length === length).flatMap((one) => letters.map((letter) => one + letter)))
    }
    const pattern = fc.array(fc.constantFrom('a', 'b', '*'), { minLength: 1, maxLength: 4 }).map((parts) => parts.join(''))
    assertProperty(
      'contract/scope-pattern: overlap',
      fc.property(pattern, pattern, (left, right) => {
        expect(overlaps(left, right)).toBe(scopes.some((scope) => matchesScope(left, scope) && matchesScope(right, scope)))
      }),
      { numRuns: 500 },
    )
  })
})

function byDefinition(pattern: string, scope: string): boolean {
  if (pattern === '') return scope === ''
  if (pattern.startsWith('*'))
    return Array.from({ length: scope.length + 1 }, (_, at) => at).some((at) => byDefinition(pattern.slice(1), scope.slice(at)))
  return pattern[0] === scope[0] && byDefinition(pattern.slice(1), scope.slice(1))
}
