import { z } from 'zod'
import { checkJson } from '../../base/check-json.ts'
import { fromZod } from '../../contract/problem.ts'
import { type FieldError } from '../../base/field-error.ts'
import { hashJson } from '../../base/json.ts'
import { activation } from './activation.ts'
import { blackboardPath, description, expressionText, label, reference, skillId, skillVersion, slotName, toolName } from './names.ts'
import { plan } from './plan.ts'
import { signature } from './signature.ts'
import { byteLength } from '../../base/byte-length.ts'

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
  /** What changes outside, as a goal's postconditions name it: `updated:appservice_image`. */
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
  /** Who may run it. Absent or empty it is nobody: a skill is closed until someone says who may. */
  allow_roles: z.array(label).max(32).optional(),
  deny_if: expressions,
  needs_approval_if: expressions,
  /** How long somebody may approve it, from the proposal on; a week at most. */
  approval_within_s: z.int().min(1).max(604_800).default(86_400),
  /** Whether the key that proposed it may approve it itself. */
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
})

/** A capability manifest: everything about one version of a skill, which never changes. What has a default may be left out. */
export const manifestSchema = z.strictObject({
  id: skillId,
  version: skillVersion,
  owner: label,
  scope: z.enum(['project', 'org']).default('project'),
  /** What the model is told of it. */
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

export const MANIFEST_BYTES = 128_000

export type ParsedManifest = { ok: true; manifest: Manifest } | { ok: false; errors: FieldError[] }

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
