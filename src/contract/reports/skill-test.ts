import { z } from 'zod'

const count = z.int()
const text = z.string()

const suite = z.object({
  n: count.describe('Cases that were run.'),
  passed: count,
  required: z.number().describe('The share that must pass.'),
})

export const ciReport = z.object({
  skill_id: text,
  version: text,
  hash: text.describe('SHA-256 of the manifest that was tested.'),
  seed: text.describe('The same manifest, cases and seed give the same report.'),
  cases: z.enum(['declared', 'generated']).describe('`generated`: the manifest has no unit cases, so that its conditions were not tested.'),
  unit: suite,
  fuzz: suite,
  simulated: z
    .literal(true)
    .describe('The gate and the plan ran here, with answers of tools that the cases give: no tool was called, in no environment.'),
  passed: z.boolean(),
  failures: z.array(z.object({ kind: z.enum(['unit', 'fuzz']), name: text, reason: text })).describe('The first 20.'),
})
export type CiReport = z.infer<typeof ciReport>

export const skillTest = ciReport
  .extend({
    failed_in_a_row: count.describe('The number of latest runs that failed.'),
    tested_at: z.iso.datetime(),
    by: text.describe('The name of the key that ran it, or `learner`.'),
  })
  .meta({ id: 'SkillTest' })
