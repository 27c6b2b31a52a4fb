import { Cron } from 'croner'
import { z } from 'zod'

const cron = z
  .string()
  .min(1)
  .max(200)
  .superRefine((expression, context) => {
    try {
      if (new Cron(expression, { timezone: 'UTC', paused: true }).nextRun() === null)
        context.addIssue('this cron expression never comes due')
    } catch (error) {
      // croner begins with its own name, and ends with a full stop, as the sentence around it does.
      const reason = (error instanceof Error ? error.message : String(error)).replace(/^CronPattern: /, '').replace(/\.+$/, '')
      context.addIssue(`not a cron expression such as "0 6 * * *": ${reason}`)
    }
  })

/** When a timer ticks: at an interval in seconds, by a cron expression in UTC, or once. */
export const schedule = z.union(
  [
    z.strictObject({ every_s: z.number().min(1).max(31_536_000) }),
    z.strictObject({ cron }),
    z.strictObject({ at: z.iso.datetime({ offset: true }) }),
  ],
  'a timer is {"every_s": seconds}, {"cron": "0 6 * * *"} or {"at": "2026-01-01T00:00:00Z"}',
)
export type Schedule = z.infer<typeof schedule>

export const timer = z
  .object({ name: z.string(), schedule, next_at: z.iso.datetime(), fired: z.int().describe('Number of ticks so far.') })
  .meta({ id: 'Timer' })
export type Timer = z.infer<typeof timer>

/** The first tick after `after` (ms), or null. Ticks of `every_s` stay on the grid of `anchor`. */
export function nextTick(schedule: Schedule, after: number, anchor: number): number | null {
  if ('at' in schedule) {
    const at = Date.parse(schedule.at)
    return at > after ? at : null
  }
  if ('cron' in schedule) return new Cron(schedule.cron, { timezone: 'UTC', paused: true }).nextRun(new Date(after))?.getTime() ?? null
  const step = schedule.every_s * 1000
  const next = anchor + (Math.floor((after - anchor) / step) + 1) * step
  // A quotient of fractions may be just below the whole number that it stands for.
  return next > after ? next : next + step
}
