import { expect, test } from 'vitest'
import { atOnce } from '../../../src/base/steps.ts'
import { refusalWords, untold } from '../../../src/contract/lists/refusals.ts'
import { classesOf } from '../../../src/features/learning/reflexes/classes.ts'
import { decisionWords, rejectedWords } from '../../../src/features/learning/contract/decision-words.ts'
import { call, history, reply } from './histories.ts'

/** The words for the one kind of decision that so many events got. */
function wordsOf(decide: (index: number) => ReturnType<typeof call>): string {
  const { classes } = atOnce(classesOf(history(20, (index) => [{ type: 'mail', address: `a${index}@x.com` }, decide(index)])))
  expect(classes).toHaveLength(1)
  return decisionWords(classes[0]?.key ?? '')
}

test('a decision reads by the names of its arguments, and by the values that it always has', () => {
  expect(wordsOf((index) => call('send', { to: { address: `a${index}@x.com` }, text: 'We have it' }))).toBe(
    'tool send with text "We have it", to.address',
  )
  expect(wordsOf(() => reply('Thank you + {all}'))).toBe('reply "Thank you + {all}"')
  expect(wordsOf(() => [...call('label', { name: 'spam' }), ...reply('Done')])).toBe('tool label with name "spam" + reply "Done"')
  expect(wordsOf(() => call('stop', {}))).toBe('tool stop')
  expect(wordsOf(() => [])).toBe('nothing')
})

test.each([
  ['the sequence of a skill', 'http.tickets.read → act_global', 'http.tickets.read → act_global'],
  ['a key that was cut', `tool send ["text"] {"[\\"text\\"]":"We ha`, 'tool send with text'],
  ['all of them', 'all', 'all decisions'],
])('%s reads as it can', (_, key, words) => expect(decisionWords(key)).toBe(words))

test('a refusal names no path, and is not repeated after an answer that tells it', () => {
  const masked = rejectedWords({ what: 'tool send ["to"]', reason: 'its argument ["to","name"] is masked in the log (9 decisions)' })
  expect(refusalWords(masked)).toBe('“tool send with to”: its argument to.name is masked in the log (9 decisions)')
  const few = { what: 'all decisions', reason: 'at least 40 decisions are needed (12 decisions)' }
  const answer = 'Nothing was learned from 12 decisions, 12 of them new: at least 40 decisions are needed (12 decisions).'
  expect(untold({ answer, rejected: [few, masked] })).toEqual([masked])
})
