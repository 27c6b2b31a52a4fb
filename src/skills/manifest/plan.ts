import { z } from 'zod'
import { expressionText, slotName, toolName } from './names.ts'

const argumentsOfTool = z.record(z.string().min(1).max(128), z.json())
const timeout_ms = z.int().min(1).max(600_000)

const step = z.strictObject({
  /** Names the step for compensation and for templates (`{{work.steps.NAME.…}}`); else its index does. */
  name: slotName.optional(),
  tool: toolName,
  args: argumentsOfTool.default({}),
  timeout_ms: timeout_ms.default(30_000),
  /** CEL; a step whose guard is false is skipped. */
  guard: expressionText.optional(),
  /** `max_attempts` counts the first one; the wait doubles each time. */
  retry: z.strictObject({ max_attempts: z.int().min(1).max(10), backoff_ms: z.int().min(0).max(60_000).default(0) }).optional(),
})
export type Step = z.infer<typeof step>

const compensation = z.strictObject({
  when: z.literal('partial_failure'),
  tool: toolName,
  args: argumentsOfTool.default({}),
  /** The step that it undoes, by name or index: without that step it is not run. */
  step: z.union([slotName, z.int().min(0).max(63)]).optional(),
  timeout_ms: timeout_ms.default(30_000),
})
export type Compensation = z.infer<typeof compensation>

export const plan = z.strictObject({
  /** A template; runs of the same key have the effect once. */
  idempotence_key: z.string().min(1).max(400).optional(),
  budget: z.strictObject({ max_cost_usd: z.number().min(0).max(10_000), max_latency_ms: z.int().min(1).max(3_600_000) }),
  steps: z.array(step).min(1).max(64),
  compensation: z.array(compensation).max(64).default([]),
  /** Templates for the outputs, by name. */
  result_map: z.record(slotName, z.json()).default({}),
})
