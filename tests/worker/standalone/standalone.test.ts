import { generateText, streamText, ToolLoopAgent } from 'ai'
import { expect, test } from 'vitest'
import { proposal, scripted, world } from '../../unit/standalone/fixtures.ts'

test('in a Worker a model has skills, streamed and not, and so has an agent', async () => {
  const { reflex, saved } = world()
  const asked = { prompt: 'A note' }
  expect((await generateText({ ...reflex.wrap({ model: scripted(`Saving. ${proposal('one')}`, 'Done.') }), ...asked })).text).toBe(
    'Saving. Done.',
  )
  expect(await streamText({ ...reflex.wrap({ model: scripted(`Saving. ${proposal('two')}`, 'Done.') }), ...asked }).text).toBe(
    'Saving. Done.',
  )
  const agent = reflex.wrap({ agent: new ToolLoopAgent({ model: scripted(proposal('three'), 'Done.') }) })
  expect((await agent.generate(asked)).text).toBe('Done.')
  expect(saved).toEqual(['one', 'two', 'three'])
})
