import { z } from 'zod'
import { byteLength } from '../../base/byte-length.ts'
import { checkJson, type FieldError } from '../../base/check-json.ts'
import { hashJson } from '../../base/json.ts'
import { fromZod } from '../../contract/problem.ts'
import { tokensOf } from './keyword.ts'
import { blackboardPath, description, expressionText, label, reference, skillId, skillVersion, slotName, toolName } from './names.ts'

const expressions = z.array(expressionText).max(32).default([])

const compat = z.strictObject({
  env: z.array(label).min(1).max(16).optional(),
  toolset: label.optional(),
  repo: reference.optional(),
  project: reference.optional(),
})
export type Compat = z.infer<typeof compat>

const preconditions = z.strictObject({
  tools_available: z.array(toolName).max(64).default([]),
  /** Inputs, or places on the blackboard, that must have a value. */
  data_present: z
    .array(z.union([slotName, blackboardPath]))
    .max(64)
    .default([]),
  invariants: expressions,
})

const effects = z.strictObject({
  writes: z.array(blackboardPath).max(32).default([]),
  /** External changes, as a goal's postconditions name them: `updated:appservice_image`. */
  external: z.array(label).max(32).default([]),
})

const parser = z.strictObject({
  name: label,
  model: reference,
  temperature: z.literal(0),
  prompt_ref: reference.optional(),
  inputs: z
    .array(z.union([z.literal('raw_text'), slotName]))
    .max(8)
    .default(['raw_text']),
  outputs: z.array(slotName).min(1).max(8),
})
export type Parser = z.infer<typeof parser>

const policy = z.strictObject({
  /** Roles that may run the skill. If absent or empty, no one may. */
  allow_roles: z.array(label).max(32).optional(),
  deny_if: expressions,
  needs_approval_if: expressions,
  /** How long an approval is possible after the proposal; at most a week. */
  approval_within_s: z.int().min(1).max(604_800).default(86_400),
  /** True if the key that proposed the skill may approve it itself. */
  self_approval: z.boolean().default(false),
  /** Regions that it may run in, against `env.region` of the blackboard. */
  residency: z.array(label).max(16).optional(),
  /** `deny`: inputs must not hold what looks like an e-mail address. */
  pii: z.enum(['allow', 'deny']).default('allow'),
})

const rate = z.number().min(0).max(1)
const tests = z.strictObject({
  unit_cases: z
    .array(z.union([reference, z.record(z.string().max(64), z.json())]))
    .max(200)
    .default([]),
  fuzz: z.strictObject({ count: z.int().min(0).max(1000), mutations: z.array(label).max(32).default([]) }).optional(),
  expected: z.strictObject({ pass_rate_unit: rate, pass_rate_fuzz: rate }).optional(),
})

const provenance = z.strictObject({
  mined_from_traces: z.array(reference).max(1000).default([]),
  support: rate.optional(),
  success: rate.optional(),
  delta_cost: z.number().optional(),
  delta_p95: z.number().optional(),
  /** How often it followed each tool or `skill:ID` in those traces: breaks ties between skills. */
  after: z.record(reference, z.int().min(1)).optional(),
})

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

const argumentsOfTool = z.record(z.string().min(1).max(128), z.json())
const timeout_ms = z.int().min(1).max(600_000)

const step = z.strictObject({
  /** The name for compensation and templates (`{{work.steps.NAME.…}}`); defaults to the index. */
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
  result_map: z.record(slotName, z.json()).default({}),
})

const valueType = z.enum(['string', 'url', 'number', 'integer', 'boolean', 'list', 'object'])
export type ValueType = z.infer<typeof valueType>

const input = z.strictObject({
  name: slotName,
  type: valueType,
  required: z.boolean().default(false),
  /** Comes from the blackboard or from the caller, never from a model. */
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
  /** Paths from which missing inputs are read, and to which outputs are written. */
  blackboard_bindings: z.strictObject({ inputs: bindings.default({}), outputs: bindings.default({}) }).prefault({}),
})

/** One immutable version of a skill. Fields with a default may be omitted. */
export const manifestSchema = z.strictObject({
  id: skillId,
  version: skillVersion,
  owner: label,
  scope: z.enum(['project', 'org']).default('project'),
  description: description.optional(),
  compat: compat.prefault({}),
  signature: signature.prefault({}),
  preconditions: preconditions.prefault({}),
  plan,
  effects: effects.prefault({}),
  activation: activation.prefault({}),
  llm_support: z.strictObject({ parsers: z.array(parser).max(16).default([]) }).prefault({}),
  policy: policy.prefault({}),
  tests: tests.prefault({}),
  provenance: provenance.prefault({}),
})
export type Manifest = z.infer<typeof manifestSchema>

const MANIFEST_BYTES = 128_000

type ParsedManifest = { ok: true; manifest: Manifest } | { ok: false; errors: FieldError[] }

/** A manifest from untrusted JSON. What the schema cannot say, `checkManifest` does. */
export function parseManifest(input: unknown): ParsedManifest {
  const json = checkJson(input)
  if (!json.ok) return { ok: false, errors: [json.error] }
  const bytes = byteLength(JSON.stringify(input))
  if (bytes > MANIFEST_BYTES) {
    return { ok: false, errors: [{ path: '', message: `is ${bytes} bytes of JSON; a manifest has at most ${MANIFEST_BYTES}` }] }
  }
  const parsed = manifestSchema.safeParse(input)
  return parsed.success ? { ok: true, manifest: parsed.data } : { ok: false, errors: fromZod(parsed.error) }
}

/** SHA-256 of the manifest, 64 hex digits: the same whatever the order of its fields. */
export const hashManifest = (manifest: Manifest): Promise<string> => hashJson(manifest)

/** The schema of what authors write, as JSON Schema. */
export const manifestJsonSchema = (): z.core.JSONSchema.BaseSchema => z.toJSONSchema(manifestSchema, { io: 'input' })
