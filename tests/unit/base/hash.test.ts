import { expect, test } from 'vitest'
import { jsonHash, SHORT_HASH, textHash } from '../../../src/base/hash.ts'
import { canonicalJson, hashJson } from '../../../src/base/json.ts'
import { skillAct } from '../../../src/contract/reflex.ts'
import { senderOf, senderOfKey } from '../../../src/contract/sender.ts'

const value = { to: 'ada@example.com', amount: 12.5, tags: ['b', 'a'], none: null }
const other_order = { none: null, tags: ['b', 'a'], to: 'ada@example.com', amount: 12.5 }
const HASH = '3491d0f4f52ec97c47aa632fda32decdb7070b9392eb30c25fcb9dcde4f10d60'

test('the hash of a value is the one that is stored of it, whatever the order of its fields', async () => {
  expect(jsonHash(value)).toBe(HASH)
  expect(jsonHash(other_order)).toBe(HASH)
  expect(jsonHash(value, 32)).toBe(HASH.slice(0, 32))
  expect(jsonHash(value, SHORT_HASH)).toBe(textHash(canonicalJson(other_order)))
  expect(await hashJson(value)).toBe(HASH)
  expect(skillAct('mail', other_order).inputs_hash).toBe(HASH)
})

test('the sender of an event is its key, and its source where none sent it', () => {
  expect(senderOf({ source: 'robot', meta: { sender: senderOfKey('7') } })).toBe('key:7')
  expect(senderOf({ source: 'robot', meta: {} })).toBe('robot')
})
