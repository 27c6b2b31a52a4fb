import { expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { defineAgent } from '../../../src/agent/define-agent.ts'
import { defineTool } from '../../../src/tools/define-tool.ts'

const find = defineTool({
  description: 'Finds an order',
  input: z.object({ order: z.string(), most: z.number().default(1) }),
  execute: async ({ order, most }) => ({ order, most, at: new Date(), notes: most > 1 ? ['many'] : undefined }),
})
const other = defineTool({ description: 'Calls another server', input: z.unknown(), execute: async () => JSON.parse('1') })

test('a trigger calls the tools of its agent by their types, and others by names that can be theirs', () => {
  const agent = defineAgent({
    name: 'typed',
    scopes: ['typed/*'],
    tools: { find, other },
    async trigger(_, deps) {
      const found = await deps.call('find', { order: 'A-1' })
      expectTypeOf(found).toEqualTypeOf<{ order: string; most: number; at: unknown; notes: string[] | undefined }>()
      expectTypeOf(await deps.call('other', {})).toBeUnknown()
      expectTypeOf(await deps.call('http.tickets.open', { title: 'late' })).toBeUnknown()
      // @ts-expect-error -- no tool has this name
      await deps.call('fnid', { order: 'A-1' })
      // @ts-expect-error -- the tool has no such argument
      await deps.call('find', { ordr: 'A-1' })
      // @ts-expect-error -- its argument is a text
      return deps.done('find', { order: 1 })
    },
  })
  expect(Object.keys(agent.tools)).toEqual(['find', 'other'])
})
