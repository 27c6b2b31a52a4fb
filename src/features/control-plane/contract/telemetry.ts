import { z } from 'zod'
import { skillName } from '../../../contract/policy.ts'

export const MOST_TELEMETRY_SKILLS = 500
const LONGEST_WINDOW_MS = 86_400_000

const count = z.int().min(0).max(1e12)
const change = z.number().min(-1e9).max(1e9).nullable()

/** Numbers of one skill. Nothing else is accepted: no inputs, prompts or names. */
const aggregate = z
  .strictObject({
    skill_id: skillName,
    calls: count,
    success: count.describe('Runs that succeeded, at most `calls`.'),
    delta_cost: change.describe('Average cost of a turn that ran it, relative to one that did not: -0.4 is 40 % less. Null if unknown.'),
    delta_p95: change.describe('The same of the 95th percentile of the duration.'),
  })
  .refine(({ calls, success }) => success <= calls, { path: ['success'], error: 'is more than calls' })
export type SkillAggregate = z.infer<typeof aggregate>

export const telemetry = z
  .strictObject({
    client: z
      .string()
      .regex(/^[\w.:-]{1,64}$/)
      .describe('A name that the client keeps. A window of a client of a key counts once, however often it is sent.'),
    window: z.strictObject({ since: z.iso.datetime(), until: z.iso.datetime() }).refine(
      ({ since, until }) => {
        const length = Date.parse(until) - Date.parse(since)
        return length > 0 && length <= LONGEST_WINDOW_MS
      },
      { path: ['until'], error: 'is at most a day after since' },
    ),
    skills: z
      .array(aggregate)
      .min(1)
      .max(MOST_TELEMETRY_SKILLS)
      .refine((skills) => new Set(skills.map(({ skill_id }) => skill_id)).size === skills.length, 'names a skill twice'),
  })
  .meta({ id: 'Telemetry' })
export type Telemetry = z.infer<typeof telemetry>

export const telemetryReceipt = z
  .object({
    accepted: z.int().describe('The number of skills that were stored.'),
    duplicate: z.boolean().describe('The window was known already; nothing was stored.'),
    refused: z
      .array(z.string())
      .optional()
      .describe('Skills that the scopes of the key do not cover, or that do not exist: nothing of them was stored.'),
  })
  .meta({ id: 'TelemetryReceipt' })
export type TelemetryReceipt = z.infer<typeof telemetryReceipt>

export const skillTelemetry = z
  .object({
    skill_id: z.string(),
    clients: z.int(),
    calls: z.int(),
    success: z.int(),
    success_rate: z.number().nullable(),
    delta_cost: z.number().nullable().describe('The average of the clients that know it, weighted by their calls.'),
    delta_p95: z.number().nullable(),
  })
  .meta({ id: 'SkillTelemetry' })
