import { z } from 'zod'
import { goodsKinds } from '../../contract/market/listing.ts'
import { listingSorts, searchListings } from '../../store/market/listings.ts'
import { storeOf } from '../../store/store.ts'
import { defineTool } from '../../tools/define-tool.ts'
import { measureListings } from '../discovery/measure.ts'
import type { Desk } from './desk.ts'

const MOST_FOUND = 20

/** The methods of `genesis_store`; `update_agent_config` is the tool of that name. */
export const storeTools = (desk: Desk) => ({
  'genesis_store.search': defineTool({
    repeatable: true,
    description: 'Searches what is for sale, with figures that the platform measured and the reasons of its rank. Code is not shown.',
    input: z.strictObject({
      q: z.string().min(1).max(100).optional(),
      kind: z.enum(goodsKinds).optional(),
      type: z.string().min(1).max(128).optional().describe('A type of event that it handles.'),
      max_price: z.int().min(0).optional(),
      sort: z.enum(listingSorts).default('rank'),
    }),
    async execute(query, { now }) {
      const db = storeOf(desk.env)
      await measureListings(db, now())
      const { items } = await searchListings(db, { ...query, limit: MOST_FOUND, now: now() })
      return { listings: items }
    },
  }),
})
