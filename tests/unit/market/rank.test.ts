import { expect, test } from 'vitest'
import { rankOf } from '../../../src/features/market/discovery/measure.ts'
import { noFigures } from '../../../src/features/market/store/listings.ts'

test('the reasons of a rank group digits, and say why more calls than events can be saved', () => {
  const { because } = rankOf({ ...noFigures, scopes: 1, fires: 1430, model_calls_saved_per_1000: 1799 })
  expect(because.map(({ reason }) => reason)).toEqual([
    'It saves 1,799 model calls per 1,000 events: a turn makes several calls.',
    'It acted 1,430 times, in 1 scope.',
  ])
})
