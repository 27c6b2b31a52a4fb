import { z } from '@hono/zod-openapi'

const UNITS = { s: 1, m: 60, h: 3600, d: 86_400 } as const
const LONGEST_S = 30 * UNITS.d
const TEXT = /^([1-9]\d{0,6})([smhd])$/
const tooLong = 'a window is 30 days at most'

/** How far back to look, in ms: `10m`, `24h`, `7d`, or `{"last_s": 600}`. */
export const timeWindow = z
  .union(
    [
      z
        .string()
        .regex(TEXT)
        .transform((text) => {
          const [, count = '', unit = 's'] = TEXT.exec(text) ?? []
          return Number(count) * UNITS[unit as keyof typeof UNITS]
        }),
      z.strictObject({ last_s: z.number().positive() }).transform(({ last_s }) => last_s),
    ],
    'a window is a text such as 10m, 24h or 7d, or {"last_s": 600}',
  )
  .refine((seconds) => seconds <= LONGEST_S, tooLong)
  .transform((seconds) => seconds * 1000)
