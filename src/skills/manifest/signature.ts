import { z } from 'zod'
import { blackboardPath, description, slotName } from './names.ts'

export const valueType = z.enum(['string', 'url', 'number', 'integer', 'boolean', 'list', 'object'])
export type ValueType = z.infer<typeof valueType>

const input = z.strictObject({
  name: slotName,
  type: valueType,
  required: z.boolean().default(false),
  /** Comes from the blackboard, or from whoever runs the skill, and never from a model. */
  secret: z.boolean().optional(),
  description: description.optional(),
})
export type Input = z.infer<typeof input>

const output = z.strictObject({ name: slotName, type: valueType, description: description.optional() })
export type Output = z.infer<typeof output>

const MOST_SLOTS = 32
const bindings = z.record(slotName, blackboardPath).refine((record) => Object.keys(record).length <= MOST_SLOTS, 'are at most 32')

export const signature = z.strictObject({
  inputs: z.array(input).max(MOST_SLOTS).default([]),
  outputs: z.array(output).max(MOST_SLOTS).default([]),
  /** Where an input that nobody gave is read from, and where an output is written to. */
  blackboard_bindings: z.strictObject({ inputs: bindings.default({}), outputs: bindings.default({}) }).prefault({}),
})
