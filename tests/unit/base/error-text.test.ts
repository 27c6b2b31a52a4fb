import { expect, test } from 'vitest'
import { errorOf, messageOf, stackOf } from '../../../src/base/error-text.ts'

test.each([
  new Error('it broke'),
  new Error('Timeout: it broke'),
  new Error('Error: it broke'),
  new Error(`Timeout: ${'long '.repeat(790)}`),
  new TypeError('it broke: badly\nat the end'),
  new TypeError(''),
  new DOMException('it was stopped', 'AbortError'),
])('an error is made again from its text and stack: %s', (error) => {
  const again = errorOf(messageOf(error), stackOf(error))
  expect([again.name, again.message, messageOf(again)]).toEqual([error.name, error.message, messageOf(error)])
})

test('an error without a stack has the name with which its text begins', () => {
  expect(String(errorOf('AI_APICallError: overloaded'))).toBe('AI_APICallError: overloaded')
  expect(String(errorOf('overloaded: wait'))).toBe('Error: overloaded: wait')
  expect(String(errorOf('it broke'))).toBe('Error: it broke')
})
