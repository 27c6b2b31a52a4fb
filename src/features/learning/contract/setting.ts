import { replies } from '../../../contract/words.ts'
import { z } from 'zod'
import { closed } from '../../../contract/setting.ts'
import { trustedSender } from '../../../contract/principal.ts'
import { agreement, atLeastAllowed, DEFAULT_AGREEMENT } from '../../../contract/agreement.ts'

const fields = {
  mode: z
    .enum(['off', 'propose', 'shadow', 'auto'])
    .describe(
      '`off`: no run of learning starts by itself, and what a requested run learned never acts. `shadow`: what is learned is compared with decisions and never acts. `propose`: it acts once it is proven and a person has approved it. ' +
        '`auto`: it acts once it is proven; a person is asked where an action can be neither undone nor repeated.',
    ),
  min_agreement: agreement.describe(
    'The share of decisions that must agree, which a certificate proves: all acts together, each by itself 0.95 at least. 0.90 to 0.999. ' +
      'By tool as an object, `{"default": 0.99, "refund": 0.999}`: a tool that is named proves its own share by itself. `reply`, `note` and `nothing` may be named, too.',
  ),
  min_support: z.int().min(1).max(100_000).describe('Minimum number of decisions behind a mined sequence, and behind a certificate.'),
  window: z.int().min(100).max(1_000_000).describe('Maximum number of decisions to learn from, the newest ones.'),
  trusted_sources: z
    .array(trustedSender)
    .max(100)
    .describe(
      'Senders whose events may be the whole support of what is learned; those of any other sender may be a third. A sender is `key:ID`, the key that an event was sent with, or the `sender` of its queue message, or else its source, as for timers. ' +
        '`role:operator` and `role:admin`: keys that had this role when they sent all of these events.',
    ),
  replies: z
    .enum(replies)
    .describe(
      'Whether the words beside other acts are part of a decision. `heard`: where somebody can hear them (`meta.heard` of an event), word for word where the event or an output gives them; where they vary, any will do, and a person approves those that a reflex says. ' +
        '`exact`: always. `by_person`: where somebody can hear them any will do. `ignore`: never, so a learned reflex says nothing beside its other acts. Words that the code of a reflex says must be the same, or approved, in any case.',
    ),
  final_tools: z
    .array(z.string().min(1).max(128))
    .max(100)
    .describe(
      "Tools that callers run themselves and whose calls a person allows first, as `caller.NAME` or a pattern such as `caller.delete_*`. Other calls of callers' tools by a reflex need its proof alone; see docs/one-url.md.",
    ),
  audit_share: z
    .number()
    .min(0)
    .max(1)
    .describe(
      'The share of decisions of proven reflexes that the slow path repeats without effects. The first acts after a proof, what is new to it, and one in twenty acts that reach outside are audited beside them. 0: only new values and one in twenty of what reaches outside.',
    ),
}

export const learningSettings = z
  .strictObject(fields)
  .describe('How reflexes and skills are learned from decisions. Omitted fields have their defaults.')
export type LearningSettings = z.infer<typeof learningSettings>

/** A patch changes each field separately; null restores the default. */
export const learningPatch = closed({
  mode: fields.mode.nullable().optional(),
  min_agreement: fields.min_agreement.nullable().optional(),
  min_support: fields.min_support.nullable().optional(),
  window: fields.window.nullable().optional(),
  trusted_sources: fields.trusted_sources.nullable().optional(),
  replies: fields.replies.nullable().optional(),
  final_tools: fields.final_tools.nullable().optional(),
  audit_share: fields.audit_share.nullable().optional(),
}).describe('How reflexes and skills are learned from decisions. Omitted fields stay unchanged.')
export type LearningPatch = z.infer<typeof learningPatch>

export const defaultLearning: LearningSettings = {
  mode: 'off',
  min_agreement: DEFAULT_AGREEMENT,
  min_support: 5,
  window: 10_000,
  trusted_sources: [],
  replies: 'heard',
  final_tools: [],
  audit_share: 0.02,
}

type Layer = { learning?: LearningPatch | null | undefined }

export function mergeLearning({ learning: before }: Layer, { learning: patch }: Layer): Layer {
  const merged = patch === null ? {} : { ...before, ...patch }
  const learning = Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== null && value !== undefined))
  return { learning: Object.keys(learning).length > 0 ? learning : undefined }
}

/** Merges the layers, later ones first. */
export function effectiveLearning(layers: readonly Layer[]): LearningSettings {
  const set = { ...defaultLearning, ...layers.reduce<Layer>(mergeLearning, {}).learning }
  return learningSettings.parse({ ...set, min_agreement: atLeastAllowed(set.min_agreement) })
}
