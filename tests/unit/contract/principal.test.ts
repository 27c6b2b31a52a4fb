import { describe, expect, test } from 'vitest'
import {
  coversScope,
  countSeenBy,
  deciderOf,
  hasRole,
  isAdminOfAll,
  isKeyId,
  principal,
  senderRole,
  sizeSeenBy,
  trustedSender,
} from '../../../src/contract/principal.ts'

const valid = { key_id: 'k', name: 'ci', roles: ['publisher', 'team:on-call'], scopes: ['team-a/*'] }

describe('roles', () => {
  test.each([
    ['admin', ['admin', 'operator', 'publisher', 'viewer']],
    ['operator', ['operator', 'publisher', 'viewer']],
    ['publisher', ['publisher']],
    ['viewer', ['viewer']],
    ['on-call', ['on-call']],
    ['constructor', ['constructor']],
  ])('%s holds %j and no more', (held, expected) => {
    const all = ['admin', 'operator', 'publisher', 'viewer', 'on-call', 'constructor']
    expect(all.filter((role) => hasRole({ roles: [held] }, role))).toEqual(expected)
  })

  test('add up', () => {
    expect(hasRole({ roles: ['viewer', 'publisher'] }, 'publisher')).toBe(true)
    expect(hasRole({ roles: [] }, 'viewer')).toBe(false)
  })
})

test.each([
  ['a key', 'k', ['admin'], 'admin'],
  ['a key', 'k', ['publisher', 'operator'], 'operator'],
  ['a key', 'k', ['publisher', 'team:on-call'], undefined],
  ['the key of the deployment', 'admin', ['admin'], undefined],
])('a setting may trust what %s (%s) of %j sends by the role %s', (_, key_id, roles, role) => {
  expect(senderRole({ key_id, roles })).toBe(role)
})

describe('scopes', () => {
  test.each([
    [['*'], 'x', true],
    [['team-a/*', 'default'], 'default', true],
    [['team-a/*'], 'team-b/x', false],
    [[], 'x', false],
    [['team-a/*'], 'team-a/x/*', true],
    [['team-a/*'], '*', false],
  ])('%j cover %s: %s', (scopes, scope, covered) => {
    expect(coversScope({ scopes }, scope)).toBe(covered)
  })
})

describe('a principal', () => {
  test('may have roles of the deployment’s own', () => {
    expect(principal.parse(valid)).toEqual(valid)
  })

  test.each([{ roles: ['a b'] }, { scopes: ['a b'] }, { name: '' }, { name: 'a\nb' }, { key_id: '' }])('may not have %j', (broken) => {
    expect(principal.safeParse({ ...valid, ...broken }).success).toBe(false)
  })
})

test.each([
  ['admin', true],
  ['0123456789abcdef', true],
  ['0123456789abcde', false],
  ['0123456789abcdef0', false],
  ['0123456789abcdeg', false],
  ['0123456789ABCDEF', false],
  ['admins', false],
  ['', false],
])('%j may be the id of a key: %s', (text, may) => {
  expect(isKeyId(text)).toBe(may)
})

test.each([
  ['admin', { key_id: 'k', name: 'ci', is_admin: true }],
  ['operator', { key_id: 'k', name: 'ci', is_admin: false }],
  ['publisher', null],
  ['viewer', null],
])('%s decides on approvals as %j', (role, decider) => {
  expect(deciderOf({ ...valid, roles: [role] })).toEqual(decider)
})

test.each([
  ['admin', '*', true],
  ['admin', 'team-a/*', false],
  ['operator', '*', false],
])('an %s of %s is an admin of all: %s', (role, scope, is) => {
  expect(isAdminOfAll({ ...valid, roles: [role], scopes: [scope] })).toBe(is)
})

test.each([
  ['key:0123456789abcdef', true],
  ['mail.role:admin', true],
  ['role:admin', true],
  ['role:operator', true],
  ['role:publisher', false],
  ['role:', false],
  ['', false],
])('%j may be a trusted sender: %s', (sender, may) => {
  expect(trustedSender.safeParse(sender).success).toBe(may)
})

test('a key sees numbers of the whole deployment roughly, unless it covers all scopes', () => {
  expect([countSeenBy(['*'], 4321), countSeenBy(['team-a/*'], 4321), countSeenBy(['team-a/*'], 999)]).toEqual([4321, 4000, 0])
  expect([sizeSeenBy(['*'], 250_000_001), sizeSeenBy(['team-a/*'], 250_000_001)]).toEqual([250_000_001, 200_000_000])
})
