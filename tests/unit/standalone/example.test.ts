import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../../cli/lib/temporary-folder.ts'
import { remember } from '../../../examples/skills/notes.ts'
import { askAndReplay } from '../../../examples/skills/replay.ts'
import { blocksOf } from '../../support/documented.ts'
import { proposal, scripted } from './fixtures.ts'

test("the example's model has its proposal run, and continues with the result", async () => {
  const answer = await remember(scripted(proposal('milk'), 'It is saved.'), 'Save a note: milk')
  expect(answer).toEqual({ text: 'It is saved.', saved: ['milk'] })
})

test('the example of docs/sdk.md keeps its trace in a folder, and decides it again', async () => {
  expect((await blocksOf('docs/sdk.md')).map(({ code }) => code)).toContain(readFileSync('examples/skills/replay.ts', 'utf8'))
  const folder = temporaryFolder('reflex-example-')
  const { text, report, changed } = await askAndReplay(scripted('It is refunded.'), `local://${folder.path}`)
  folder.remove()
  expect(text).toBe('It is refunded.')
  expect(report).toMatchObject({ mode: 'pinned', equivalent: true, complete: true })
  expect(changed).toMatchObject({ mode: 'what_if', equivalent: true })
})
