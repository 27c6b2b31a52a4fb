import { z } from 'zod'
import { agreement } from './agreement.ts'
import { risk, type Risk } from './risk.ts'
import type { Action } from './action.ts'
import type { Decision, ReflexState, ComparisonTerms } from './reflex.ts'

const count = z.int()
const text = z.string()
const ms = z.number()

/** The slow path that decides: what is learned from it holds for it alone. */
export const teacher = z
  .object({
    by: z.enum(['model', 'person', 'pull']),
    agent_version: text,
    model: text,
    prompt_hash: text,
    tools_hash: text,
    settings_revision: count,
  })
  .meta({ id: 'Teacher' })
export type Teacher = z.infer<typeof teacher>

const taught = z.record(text, count)
const values = z
  .object({
    senders: z.object({ taught, rare: count }),
    numbers: z.record(text, z.object({ low: z.number(), high: z.number(), n: count, stretched: count })),
    rare: count,
  })
  .describe('The senders of decisions that agreed, and the ranges of their numbers by field and by the word before: others are audited.')

const place = z.object({ seq: count, at: ms })
/** Counts by what the decisions share, at least as high as it was seen. */
const signs = z.record(text, count)
const cusum = z.object({ audits: count, disagreed: count, sum: z.number(), alarm: z.boolean() })
const foreseenAct = z.object({ event_type: text, act: text, n: count, k: count, from: place, to: place, signs: signs.optional() })
export type ForeseenAct = z.infer<typeof foreseenAct>
/** Comparisons of decisions with what the ones before them taught. `shapes`: of these. */
export type Foreseen = {
  teacher: Teacher
  acts: ForeseenAct[]
  shapes: { taught: Record<string, number>; rare: number; values: z.infer<typeof values> }
}

const stratum = z.object({
  event_type: text.describe('`*`: the types beyond the first 50.'),
  risk,
  act: text.describe('What it does, such as the tool that it calls. `*`: the acts of this risk together that have no bound of their own.'),
  state: z
    .enum(['open', 'proven', 'refuted'])
    .describe('`open`: still compared in shadow mode. `proven`: it may act. `refuted`: it never may.'),
  n: count.describe('Decisions compared since this stratum was opened.'),
  k: count.describe('Decisions that agreed.'),
  again: count.optional().describe('Those that another learned reflex agreed with, too: they count among all acts there alone.'),
  from: place,
  to: place,
  person: text.nullable().describe('The person who allowed it, or who rejected it if the state is `refuted`.'),
  says: z
    .union([count, z.literal(true)])
    .optional()
    .describe(
      'It says words of its own choice beside other acts, which a person must allow. The place of the latest in the log, if it is known.',
    ),
  audits: cusum.describe(
    'Decisions audited or compared since it was proven, with the state of the CUSUM test on them, less those of its branch.',
  ),
  branch: z
    .object({ signs, audits: cusum, since: count })
    .optional()
    .describe(
      'Decisions since its proof disagreed: those that share a hashed value with all of these do not act. They have a test of their own.',
    ),
  left: z.array(text).optional().describe('The hashed values of decisions that drifted, and are left to the slow path.'),
  signs: signs
    .optional()
    .describe('Its compared decisions by hashed values of the event and the act; missing if those of some are unknown.'),
  drifts: count.describe('The number of times that an alarm sent it back to shadow mode.'),
})
export type Stratum = z.infer<typeof stratum>

const counts = z.object({ n: count, k: count })

export const certificate = z
  .object({
    subject: z.object({ kind: z.enum(['reflex', 'skill']), id: text, version: text, hash: text }),
    teacher,
    procedure: z.literal('e_process'),
    alpha: z.number().describe('The chance that a poor one is proven in a stratum, at most.'),
    delta: z.number().describe('The chance that a good one is refuted in a stratum, at most.'),
    noise: z.number().describe('The share of decisions in which the teacher contradicts itself.'),
    least: z
      .object({ agreement, support: count })
      .describe('The settings `learning.min_agreement` and `learning.min_support` that it was judged by last.'),
    replies: text.optional().describe('The setting `learning.replies` by which its sequences were compared, if any was.'),
    n: count.describe('Compared decisions of the proven strata.'),
    k: count.describe('Those that agreed.'),
    bound: z
      .number()
      .nullable()
      .describe(
        'The least agreement that its proven acts have, each or together as they were proven, but for `alpha`; null if none is proven.',
      ),
    strata: z.array(stratum),
    others: z
      .array(z.object({ risk, all: counts, proven: counts }))
      .optional()
      .describe(
        'Decisions of the other reflexes that the scope has learned, when it was last judged: they count among all acts together. `proven`: of acts that have reached the floor.',
      ),
    foreseen: z
      .array(foreseenAct)
      .optional()
      .describe(
        'Decisions that were compared while it was learned, each with what the ones before it had taught. They count for an act from its first comparison in shadow mode on.',
      ),
    shapes: z
      .object({
        baseline: z.number(),
        events: count,
        unseen: z.array(count),
        alarm: z.boolean(),
        taught: z.record(text, count).describe('Compared events, by a hash of their type and of the names and kinds of their fields.'),
        rare: count.describe('Those of further shapes.'),
        values: values.optional(),
      })
      .describe('The share of unseen shapes to expect as of its proof, and the places of unseen ones in the last 500 events.'),
    issued_at: ms,
    expires_at: ms,
    lapsed: z.object({ at: ms, reason: text }).nullable(),
  })
  .meta({ id: 'Certificate' })
export type Certificate = z.infer<typeof certificate>
export type CountsOfOthers = NonNullable<Certificate['others']>[number]

/** A certificate as people read it. */
export const shownCertificate = z
  .object({ certificate, why: z.array(text).describe('The certificate in sentences.') })
  .meta({ id: 'ShownCertificate' })

const changed = z.enum([
  'issued',
  'proven',
  'refuted',
  'retracted',
  'drifted',
  'shapes_changed',
  'bounds_changed',
  'lapsed',
  'asked',
  'withdrawn',
  'allowed',
  'rejected',
])
export type CertificateChange = z.infer<typeof changed>

/** The log entries of proofs. Event type, risk and act are null if all strata changed. */
export type ProvingEntry =
  /** An action in shadow mode and the actual decision; `agreed` is null if not comparable. */
  | {
      kind: 'reflex-compared'
      reflex_id: string
      version: number
      action: Action
      decision: Decision
      agreed: boolean | null
      /** The terms by which a sequence was compared, or an `ignore` in a turn on several events. */
      terms?: ComparisonTerms
    }
  /** `turn_id` is null if an operator did it. */
  | { kind: 'reflex-overruled'; reflex_id: string; version: number; turn_id: string | null; reason: string }
  /** Moved by the scope's metrics; `suspended`: in this scope only, which does not own it. */
  | { kind: 'reflex-moved'; reflex_id: string; version: number; from: ReflexState; to: ReflexState | 'suspended'; reason: string }
  | {
      kind: 'certificate-changed'
      reflex_id: string
      version: number
      change: CertificateChange
      event_type: string | null
      risk: Risk | null
      /** Missing in entries of an earlier version. */
      act?: string | null
      reason: string
      /** Present with `asked`, `withdrawn`, `allowed` and `rejected`. */
      approval_id?: string
      certificate: Certificate
    }
  /** The slow path that decides from now on. */
  | { kind: 'teacher-changed'; teacher: Teacher; reason: string }
