import { z } from 'zod'
import { scopeName } from '../../core/event.ts'
import { accountId } from '../../features/market/contract/transfer.ts'
import { pageLimit } from '../paging.ts'

export const idPath = z.object({ id: z.string().min(1).max(128) })
/** Fields of tools over MCP. */
export const toolScope = z.string().min(1).max(128).describe('The name of a scope, such as team-a/web.')
export const toolPage = {
  limit: z.int().min(1).max(100).default(20),
  cursor: z.string().max(200).optional().describe('The next_cursor of the page before.'),
}

export const scopePath = z.object({ scope: scopeName.describe('Percent-encoded: `team-a/x` is `team-a%2Fx`.') })

/** For lists of what an account takes part in, by its place. */
export const accountQuery = z.object({
  account: accountId,
  limit: pageLimit(100),
  cursor: z
    .string()
    .regex(/^\d{1,15}$/)
    .optional(),
})
