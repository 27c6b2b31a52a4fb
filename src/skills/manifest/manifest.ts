import { z } from 'zod'
import { byteLength, hashJson } from '../../base/json.ts'
import { jsonHash } from '../../base/hash.ts'
import { checkJson, type FieldError } from '../../base/check-json.ts'
import { oncePer } from '../../base/once-per.ts'
import { fromZod } from '../../contract/problem.ts'
import type { SkillState } from '../../contract/skill.ts'
import { tokensOf, blackboardPath, description, expressionText, label, reference, slotName, toolName } from './names.ts'
import { skillId, skillVersion } from '../../contract/skill-names.ts'

const expressions = z.array(expressionText).max(32).default([])

const compat = z.strictObject({
  env: z.array(label).min(1).max(16).optional().describe('Environments, such as `staging`.'),
  toolset: label.optional().describe('The toolset, such as `cloud`.'),
  repo: reference.optional().describe('The repository.'),
  project: reference.optional().describe('The project.'),
})
export type Compat = z.infer<typeof compat>

const preconditions = z.strictObject({
  tools_available: z.array(toolName).max(64).default([]).describe('Tools that the scope must offer.'),
  data_present: z
    .array(z.union([slotName, blackboardPath]))
    .max(64)
    .default([])
    .describe('Inputs, or paths of the blackboard, that must have a value.'),
  invariants: expressions.describe('CEL expressions that must be true.'),
})

const effects = z.strictObject({
  writes: z.array(blackboardPath).max(32).default([]).describe('Paths of the blackboard that a run writes.'),
  external: z
    .array(label)
    .max(32)
    .default([])
    .describe('Changes outside, as postconditions of goals name them: `updated:appservice_image`. They need a key and a compensation.'),
})

const parser = z.strictObject({
  name: label.describe('The name in the log.'),
  model: reference.describe('The only model that may parse; with another one, the status is `clarify`.'),
  temperature: z.literal(0),
  prompt_ref: reference
    .optional()
    .describe('Your own name for the prompt: each parsing names it in the log and in its trace (`reflex.slots`).'),
  inputs: z
    .array(z.union([z.literal('raw_text'), slotName]))
    .max(8)
    .default(['raw_text'])
    .describe('What it reads: the conversation (`raw_text`) or inputs.'),
  outputs: z.array(slotName).min(1).max(8).describe('The inputs of the skill that it fills in.'),
})
export type Parser = z.infer<typeof parser>

const policy = z.strictObject({
  allow_roles: z.array(label).max(32).optional().describe('Roles that may run the skill. If absent or empty, no one may.'),
  deny_if: expressions.describe('CEL expressions; one that is true denies the run.'),
  needs_approval_if: expressions.describe('CEL expressions; if one is true, a person must approve the run.'),
  approval_within_s: z.int().min(1).max(604_800).default(86_400).describe('How long after the proposal it may be approved.'),
  self_approval: z.boolean().default(false).describe('True if the key that proposed the skill may approve it itself.'),
  residency: z.array(label).max(16).optional().describe('Regions that it may run in, compared with `env.region` of the blackboard.'),
  pii: z.enum(['allow', 'deny']).default('allow').describe('`deny`: an input that looks like an e-mail address is refused.'),
})

const rate = z.number().min(0).max(1)
const tests = z.strictObject({
  unit_cases: z
    .array(z.union([reference, z.record(z.string().max(64), z.json())]))
    .max(200)
    .default([])
    .describe('Cases, or names of cases that are sent with the test.'),
  fuzz: z
    .strictObject({ count: z.int().min(0).max(1000), mutations: z.array(label).max(32).default([]) })
    .optional()
    .describe('How many mutations are drawn, and which kinds; all kinds if empty.'),
  expected: z
    .strictObject({ pass_rate_unit: rate, pass_rate_fuzz: rate })
    .optional()
    .describe('Shares that must pass; at least 0.95 and 0.85.'),
})

const provenance = z.strictObject({
  mined_from_traces: z.array(reference).max(1000).default([]).describe('Ids of the traces that it was mined from.'),
  support: rate.optional().describe('Share of the turns that had the sequence.'),
  success: rate.optional().describe('Share of its occurrences that ended well.'),
  delta_cost: z.number().optional().describe('Relative change of the cost, such as -0.42.'),
  delta_p95: z.number().optional().describe('Relative change of the 95th percentile of the latency.'),
  after: z
    .record(reference, z.int().min(1))
    .optional()
    .describe('How many times it followed each tool or `skill:ID`. It orders skills of equal score.'),
})

const labels = z.array(label).max(32).default([])
const keyword = label.refine((text) => tokensOf(text).length > 0, 'holds no letter and no digit')
const weight = z.number().min(0).max(1000).default(0)

const activation = z.strictObject({
  required_slots: z.array(slotName).max(32).default([]).describe('Inputs without which the answer is `clarify`.'),
  goal_labels: labels.describe("Labels of the scope's setting `goal_labels`."),
  keywords_any: z.array(keyword).max(32).default([]).describe('Words of the conversation. One match is enough.'),
  entity_types: labels.describe("Types in the events' field `entity_types`."),
  score_weights: z
    .strictObject({ goal_label: weight, keyword_hit: weight, entity_type: weight, recent_success: weight })
    .prefault({})
    .describe('What each kind of cue adds to the score.'),
  tau: z.number().min(0).max(10_000).optional().describe('The score that it needs. Unless set, 85 % of the highest possible score.'),
  cooldown_s: z.number().min(0).max(86_400).default(0).describe('Seconds between two runs in a scope.'),
  max_concurrency: z.int().min(1).max(1000).default(1).describe('Runs at the same time in a scope.'),
})

/** Items that one step may run for. */
const MOST_TURNS = 64

const argumentsOfTool = z.record(z.string().min(1).max(128), z.json())
const timeout_ms = z.int().min(1).max(600_000)

const step = z.strictObject({
  name: slotName.optional().describe('For compensation and templates (`{{work.steps.NAME.…}}`). The index unless set.'),
  tool: toolName.describe('The tool that it calls.'),
  args: argumentsOfTool.default({}).describe('Its arguments. Texts may have templates.'),
  timeout_ms: timeout_ms.default(30_000).describe('Milliseconds for one attempt.'),
  guard: expressionText.optional().describe('CEL. A step whose guard is false is skipped.'),
  for_each: z
    .strictObject({
      list: z.string().min(1).max(200).describe('A template that is a list, such as `{{work.steps.find.orders}}`.'),
      at_most: z.int().min(1).max(MOST_TURNS).describe('A longer list fails the step before its first call.'),
    })
    .optional()
    .describe('Runs the step once for each item, which is `{{work.item}}`. Its output is the list of their outputs.'),
  retry: z
    .strictObject({ max_attempts: z.int().min(1).max(10), backoff_ms: z.int().min(0).max(60_000).default(0) })
    .optional()
    .describe('`max_attempts` counts the first one; the wait doubles each time.'),
})
export type ManifestStep = z.infer<typeof step>

const compensation = z.strictObject({
  when: z.literal('partial_failure'),
  tool: toolName.describe('The tool that undoes the step.'),
  args: argumentsOfTool.default({}).describe('Its arguments. Texts may have templates.'),
  step: z
    .union([slotName, z.int().min(0).max(63)])
    .optional()
    .describe('The step that it undoes, by name or index. It is run only if that step was.'),
  timeout_ms: timeout_ms.default(30_000).describe('Milliseconds for one attempt.'),
})
export type Compensation = z.infer<typeof compensation>

const plan = z.strictObject({
  idempotence_key: z.string().min(1).max(400).optional().describe('A template. Runs of the same key have the effect once.'),
  budget: z
    .strictObject({ max_cost_usd: z.number().min(0).max(10_000), max_latency_ms: z.int().min(1).max(3_600_000) })
    .describe('Checked before and during each step.'),
  steps: z.array(step).min(1).max(64).describe('Run one after the other.'),
  compensation: z.array(compensation).max(64).default([]).describe('Calls that undo steps after a failure, newest first.'),
  result_map: z.record(slotName, z.json()).default({}).describe('The outputs, as values or templates.'),
})

const valueType = z.enum(['string', 'url', 'number', 'integer', 'boolean', 'list', 'object'])
export type ValueType = z.infer<typeof valueType>

const input = z.strictObject({
  name: slotName,
  type: valueType,
  required: z.boolean().default(false),
  destination: z
    .boolean()
    .optional()
    .describe('True if it decides where the plan acts, false if it does not. Unset: as the tools of the steps say, or by format and name.'),
  secret: z.boolean().optional().describe('True if it comes from the blackboard or the caller, never from a model.'),
  description: description.optional().describe('The model receives it.'),
})
export type Input = z.infer<typeof input>

const output = z.strictObject({ name: slotName, type: valueType, description: description.optional() })
export type Output = z.infer<typeof output>

const MOST_SLOTS = 32
const bindings = z.record(slotName, blackboardPath).refine((record) => Object.keys(record).length <= MOST_SLOTS, 'are at most 32')

const signature = z.strictObject({
  inputs: z.array(input).max(MOST_SLOTS).default([]),
  outputs: z.array(output).max(MOST_SLOTS).default([]),
  blackboard_bindings: z
    .strictObject({ inputs: bindings.default({}), outputs: bindings.default({}) })
    .prefault({})
    .describe('Paths from which missing inputs are read, and to which outputs are written.'),
})

/** An immutable version of a skill. Fields with a default may be omitted. */
export const manifestSchema = z.strictObject({
  id: skillId.describe('The name of the skill, such as `deploy.container.appservice`.'),
  version: skillVersion.describe('A semantic version. A version is immutable.'),
  owner: label.describe('A label for people. The key that registers the skill owns it.'),
  scope: z.enum(['project', 'org']).default('project').describe("Who may read it: the owner's scopes, or every key."),
  description: description.optional().describe('The model receives it.'),
  compat: compat.prefault({}).describe('Where it fits. An absent field fits everywhere.'),
  signature: signature.prefault({}).describe('Its inputs and outputs.'),
  preconditions: preconditions.prefault({}).describe('Checked before the score.'),
  plan: plan.describe('What a run does.'),
  effects: effects.prefault({}).describe('What a run changes.'),
  activation: activation.prefault({}).describe('The cues and the score.'),
  llm_support: z
    .strictObject({ parsers: z.array(parser).max(16).default([]) })
    .prefault({})
    .describe('Models that may extract missing inputs from the conversation, at temperature 0.'),
  policy: policy.prefault({}).describe('Who may run it, and when.'),
  tests: tests.prefault({}).describe('What a version must pass before it becomes active.'),
  provenance: provenance.prefault({}).describe('Where a mined skill comes from.'),
})
export type Manifest = z.infer<typeof manifestSchema>
export type FoundSkill = { manifest: Manifest; state: SkillState }

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

/** The hash of what a plan does: its calls and outputs, without words about it and its limits. */
export function hashPlan({ plan: { budget: _budget, ...plan } }: Manifest): Promise<string> {
  const steps = plan.steps.map(({ timeout_ms: _timeout, retry: _retry, ...step }) => step)
  const compensation = plan.compensation.map(({ timeout_ms: _timeout, ...step }) => step)
  return hashJson({ ...plan, steps, compensation })
}

/** As `hashManifest`, which is asynchronous. */
export const manifestHash = oncePer((manifest: Manifest): string => jsonHash(manifest))

/** SHA-256 of the manifest, 64 hex digits: the same whatever the order of its fields. */
export const hashManifest = (manifest: Manifest): Promise<string> => hashJson(manifest)

/** The schema of what authors write, as JSON Schema. */
export const manifestJsonSchema = (): z.core.JSONSchema.BaseSchema => z.toJSONSchema(manifestSchema, { io: 'input' })
