import { z } from 'zod'
import type { InMs } from '../base/time.ts'
import { reflexSharing } from './reflex.ts'

const time = z.iso.datetime()
const text = z.string()

export const skillStates = ['candidate', 'active', 'deprecated'] as const
export const skillState = z
  .enum(skillStates)
  .describe(
    '`candidate`: registered, not run until activated. `active`: shown to models and run. `deprecated`: no longer run. Of several active versions the newest that fits is used.',
  )
export type SkillState = z.infer<typeof skillState>

export const skillSharing = reflexSharing
export type SkillSharing = (typeof skillSharing)[number]

const provenance = z.object({
  by: text.describe("A key's name, or the agent of `scope`."),
  scope: text.nullable(),
  run: text.optional().describe('The run of learning that mined it.'),
  origin: z.object({ id: text, version: text, hash: text }).optional().describe('The version that it was copied from, by a purchase.'),
  forced: z
    .object({ by: text, reason: text, at: z.number().describe('In ms.') })
    .optional()
    .describe('The person who activated it last without passing tests.'),
})
export type SkillProvenance = z.infer<typeof provenance>

/** A manifest as parsed at registration. A run parses it again: the schema may have changed. */
export type StoredManifest = {
  id: string
  version: string
  scope?: SkillSharing | undefined
  description?: string | undefined
} & Record<string, unknown>

const hash = text.describe('SHA-256 of the manifest. A version never changes.')

export const skillVersion = z
  .object({
    id: text,
    version: text,
    hash,
    owner: text.describe(
      'The key that registered it, or `scope:NAME` for the agent of a scope. The `owner` inside the manifest is independent of it.',
    ),
    scopes: z.array(text).describe('Scopes the owner may act in. Elsewhere the skill is neither shown nor run.'),
    state: skillState,
    state_reason: text.nullable(),
    state_at: time,
    provenance,
    created_at: time,
    sealed: z
      .boolean()
      .describe(
        'True once it was listed for sale, and for a bought copy: only its owner, and admins who cover all of its scopes, read its manifest.',
      ),
  })
  .meta({ id: 'SkillVersion' })

export const listedSkill = skillVersion.extend({ description: text }).meta({ id: 'ListedSkill' })

const findings = z.array(z.object({ path: text, message: text, example: text })).optional()

export const skill = skillVersion
  .extend({
    findings: findings.describe('What its author hardly meant, such as a condition that can never hold. Absent if there is nothing.'),
    manifest: z.record(text, z.unknown()).nullable().describe('With defaults filled in. Null if it is sealed and the key may not read it.'),
    versions: z
      .array(skillVersion.pick({ version: true, hash: true, state: true, state_reason: true, state_at: true, created_at: true }))
      .describe('All versions, newest first.'),
  })
  .meta({ id: 'Skill' })

export const registeredSkill = skillVersion
  .pick({ id: true, version: true, hash: true, state: true, owner: true })
  .extend({
    findings: findings.describe('What its author hardly meant, such as a condition that can never hold. It is registered all the same.'),
  })
  .meta({ id: 'RegisteredSkill' })

/** A stored version. Only its `state` changes. `owner_id` is a key's id, or `scope:NAME`. */
export type SkillVersion = InMs<z.infer<typeof skillVersion>, 'state_at' | 'created_at'> & { owner_id: string; manifest: StoredManifest }

export const bulletin = z
  .object({
    text: text.describe('For the system prompt; empty if no skill fits.'),
    tokens: z.int().describe('An estimate.'),
    cards: z.array(
      z.object({
        skill_id: text,
        version: text,
        text,
        tokens: z.int(),
        shortened: z.boolean().describe('The card was shortened to fit.'),
        score: z.number(),
      }),
    ),
  })
  .meta({ id: 'Bulletin' })
/** `text` is for the system prompt, once per turn. */
export type Bulletin = z.infer<typeof bulletin>

const proposalStatuses = ['ok', 'refused', 'clarify', 'needs_approval', 'partial_failure', 'failed', 'unknown'] as const

export const proposalResult = z
  .looseObject({
    status: z.enum(proposalStatuses),
    reason: text.nullable(),
    outputs: z.record(text, z.unknown()),
    questions: z.array(z.object({ slot: text, question: text })),
    approval_id: text.nullable(),
    decision: z.looseObject({
      verdict: text,
      stages: z.array(z.looseObject({ stage: text, verdict: z.enum(['passed', 'failed', 'not_reached']), reason: text.nullable() })),
      score: z.number().nullable(),
      tau: z.number().nullable(),
      to_pass: z.array(text),
    }),
    steps: z.array(z.object({ index: z.int(), tool: text, status: text, duration_ms: z.number() })),
    compensation: z.array(z.looseObject({ tool: text, status: text })),
    idempotent: z.boolean().describe('Nothing ran: the outputs are those of an earlier run.'),
    dry_run: z.boolean().describe('Nothing ran, regardless of the status; `ok` means that the gate would allow it.'),
    trace_id: text,
  })
  .meta({ id: 'ProposalResult' })
export type ProposalReport = z.infer<typeof proposalResult>
