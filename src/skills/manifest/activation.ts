import { z } from 'zod'
import { tokensOf } from '../bulletin/keyword.ts'
import { label, slotName } from './names.ts'

const labels = z.array(label).max(32).default([])
const keyword = label.refine((text) => tokensOf(text).length > 0, 'holds no letter and no digit')
const weight = z.number().min(0).max(1000).default(0)

export const activation = z.strictObject({
  required_slots: z.array(slotName).max(32).default([]),
  goal_labels: labels,
  keywords_any: z.array(keyword).max(32).default([]),
  entity_types: labels,
  score_weights: z.strictObject({ goal_label: weight, keyword_hit: weight, entity_type: weight, recent_success: weight }).prefault({}),
  /** Unless set, a share of what the cues can score at most. */
  tau: z.number().min(0).max(10_000).optional(),
  cooldown_s: z.number().min(0).max(86_400).default(0),
  max_concurrency: z.int().min(1).max(1000).default(1),
})
