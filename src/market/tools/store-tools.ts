import { z } from 'zod'
import { reflexes, skills } from '../../artifacts/kinds.ts'
import { storeOf } from '../../store/store.ts'
import { defineTool } from '../../tools/define-tool.ts'
import type { Desk } from './desk.ts'

const MOST_FOUND = 20

/** The methods of `genesis_store`; `update_agent_config` is the tool of that name. */
export const storeTools = (desk: Desk) => ({
  'genesis_store.search': defineTool({
    repeatable: true,
    description: 'Searches reflexes and skills by text.',
    input: z.strictObject({ q: z.string().min(1).max(100).optional() }),
    async execute(query) {
      const asked = { ...query, limit: MOST_FOUND }
      const [found, plans] = await Promise.all([reflexes.list(storeOf(desk.env), asked), skills.list(storeOf(desk.env), asked)])
      return {
        reflexes: found.items.map(({ id, version, owner, description, state }) => ({ id, version, owner, description, state })),
        skills: plans.items.map(({ id, version, owner, state }) => ({ id, version, owner, state })),
      }
    },
  }),
})
