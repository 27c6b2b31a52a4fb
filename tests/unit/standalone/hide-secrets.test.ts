import { expect, test } from 'vitest'
import { secretHider } from '../../../src/base/secrets.ts'

test.each([
  ['a text', 'the key is Bearer s3cret-token', 'the key is [secret]'],
  ['a word of it', 'the token s3cret-token', 'the token [secret]'],
  ['a part that is no secret', 'Bearer of news', 'Bearer of news'],
  ['lists and objects, their names too', [{ a: 's3cret-token', 's3cret-token': 1 }], [{ a: '[secret]', '[secret]': 1 }]],
  ['values that are not strings', [1, null, true], [1, null, true]],
])('a secret is taken out of %s', (_, value, hidden) => {
  expect(secretHider(['Bearer s3cret-token'], 1).value<unknown>(value)).toEqual(hidden)
})
