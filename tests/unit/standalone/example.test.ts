import { expect, test } from 'vitest'
import { remember } from '../../../examples/skills/notes.ts'
import { proposal, scripted } from './fixtures.ts'

test("the example's model has its proposal run, and continues with the result", async () => {
  const answer = await remember(scripted(proposal('milk'), 'It is saved.'), 'Save a note: milk')
  expect(answer).toEqual({ text: 'It is saved.', saved: ['milk'] })
})
