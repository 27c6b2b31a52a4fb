import { z } from 'zod'
import { limits } from '../../../base/limits.ts'
import { reflexId, reflexReference } from '../../../contract/reflex.ts'
import { settingsPatch } from '../../../contract/settings/settings.ts'

const MOST_PROGRAMS = 20
const MOST_CODE = 64_000

const changedManifest = z.looseObject({ id: z.string().min(1).max(128) })

/** The exchanged parts of a `what_if`. Strict: a misspelt name changes nothing. */
export const replayChanges = z
  .strictObject({
    reflexes: z.array(reflexReference).max(limits.chain_length).optional().describe("Replaces the scope's chain of reflexes."),
    reflex_code: z
      .record(reflexId, z.string().min(1).max(MOST_CODE))
      .refine((code) => Object.keys(code).length <= MOST_PROGRAMS, `at most ${MOST_PROGRAMS} reflexes`)
      .optional()
      .describe('Code of reflexes, by id. It replaces the recorded code wherever the chain names the id.'),
    manifest: z
      .union([
        changedManifest,
        z
          .array(changedManifest)
          .min(1)
          .max(MOST_PROGRAMS)
          .refine((list) => new Set(list.map(({ id }) => id)).size === list.length, 'name each skill once'),
      ])
      .optional()
      .describe(
        'Replaces the manifest of the skill with this id, whichever version was recorded; a list replaces those of several skills.',
      ),
    settings: settingsPatch
      .optional()
      .describe('A merge patch on the recorded settings, such as `{"tau": 0.9}` or `{"overlap": "interrupt"}`.'),
    instructions: z.string().max(20_000).optional().describe('Short for `settings.instructions`.'),
    model: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .describe('The name of a model, as in `REFLEX_MODEL`. Its answers are unknown without a `budget`.'),
  })
  .refine((changes) => Object.values(changes).some((change) => change !== undefined), 'name at least one change')
export type ReplayChanges = z.infer<typeof replayChanges>

export const replayBudget = z
  .strictObject({
    usd: z.number().positive().max(1000).optional().describe('No call starts once this is spent. The last call may exceed it.'),
    calls: z.int().min(1).max(10_000).optional().describe('Maximum number of calls.'),
  })
  .refine(({ usd, calls }) => usd !== undefined || calls !== undefined, 'name usd, calls or both')
  .meta({
    id: 'ReplayBudget',
    description:
      'Allows a `what_if` to ask the model for answers that are not recorded. Needs the role `operator`. Without it no model is asked.',
  })
export type ReplayBudget = z.infer<typeof replayBudget>

export const spent = z.object({ calls: z.int(), usd: z.number().nullable().describe('Null if the price of the model is unknown.') })
export type Spent = z.infer<typeof spent>

export const effectChange = z
  .object({
    span_id: z.string(),
    change: z.enum(['appears', 'vanishes']).describe('`appears`: only with the changes. `vanishes`: only as recorded.'),
    act: z.string().describe('`call_tool`, `reply`, `emit_event`, …'),
    content: z.unknown().describe('The tool with its input, or the action of the reflex.'),
  })
  .meta({ id: 'EffectChange' })
export type EffectChange = z.infer<typeof effectChange>
