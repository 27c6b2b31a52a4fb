import { describe, expect, test } from 'vitest'
import { LEARNED_BY, reflexTitle } from '../../../src/contract/lists/reflexes.ts'
import type { ActTemplate } from '../../../src/features/learning/reflexes/classes.ts'
import type { Literal } from '../../../src/features/learning/reflexes/facts/condition.ts'
import { titleFor } from '../../../src/features/learning/reflexes/title.ts'

const block: ActTemplate = { kind: 'tool', name: 'http.block', input: { fields: { address: { slot: [] } } } }
const assign: ActTemplate = { kind: 'tool', name: 'assign', input: { fields: { mail: { slot: [] }, queue: { constant: 'billing' } } } }
const reply: ActTemplate = { kind: 'reply', name: '', input: { fields: { content: { join: ['We have read ', { slot: [] }, '.'] } } } }
const says: Literal = { condition: { is: 'says', path: ['event', 'line'], words: 'failed password' }, holds: true }
const five: Literal = { condition: { is: 'at_least', path: ['repeats', 'address'], value: 5 }, holds: true }
const quiet: Literal = { condition: { is: 'equal', path: ['event', 'text'], value: 'x'.repeat(90) }, holds: false }
const few: Literal = { condition: { is: 'one_of', path: ['event', 'kind'], values: ['meal', 'taxi'] }, holds: true }

describe('the title of a learned reflex', () => {
  test.each([
    ['its act and its condition', [block], [[says]], 'Block the address where line says "failed password"'],
    ['two conditions', [block], [[says, five]], 'Block the address where line says "failed password" and repeats.address is at least 5'],
    ['constant values', [assign], [[says]], 'Assign the mail, queue "billing" where line says "failed password"'],
    ['each act', [block, reply], [], 'Block the address, then reply "We have read …."'],
    ['values', [block], [[few]], 'Block the address where kind is "meal" or "taxi"'],
    ['no act', [], [[quiet]], `Do nothing where text is not "${'x'.repeat(40)}…"`],
    ['further rules', [block], [[says], [five], [quiet]], 'Block the address where line says "failed password", and in 2 more cases'],
  ] as const)('has %s', (_, acts, rules, title) => {
    expect(
      titleFor(
        { acts },
        rules.map((literals) => ({ literals })),
      ),
    ).toBe(title)
  })

  test('begins its description, and any other reflex is named by its id', () => {
    const description = `Block the address${LEARNED_BY}rules from 70 of 90 decisions: block.`
    expect(reflexTitle({ id: 'learned.block.0badcafe', description })).toBe('Block the address')
    expect(reflexTitle({ id: 'learned.block.0badcafe', description: 'Learned long ago.' })).toBe('learned.block.0badcafe')
    expect(reflexTitle({ id: 'greet', description })).toBe('greet')
  })
})
