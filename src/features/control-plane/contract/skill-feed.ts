import { z } from 'zod'
import { skillName, skillVersionName } from '../../../contract/policy.ts'

export const MOST_FEED_ITEMS = 20

const item = z.object({
  id: skillName,
  version: skillVersionName,
  hash: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .describe('SHA-256 of the manifest as JSON with sorted keys.'),
  manifest: z.record(z.string().max(64), z.unknown()).nullable().describe('Null if the version is no longer active.'),
})
export type FeedItem = z.infer<typeof item>

export const skillFeed = z
  .object({
    items: z.array(item).max(MOST_FEED_ITEMS),
    revision: z
      .int()
      .min(0)
      .describe(
        'Pass it on as `since`. If it is lower than `since`, the registry was restored from a backup: drop the copy and read from 0. Only what the key may read moves it.',
      ),
    more: z.boolean().describe('Another page follows at once.'),
  })
  .meta({ id: 'SkillFeed' })
export type SkillFeed = z.infer<typeof skillFeed>
