import { z } from 'zod'
import type { InMs } from '../../../base/time.ts'
import { trustedSender } from '../../../contract/principal.ts'
import { scopeName } from '../../../core/event.ts'

const count = z.int()
const text = z.string()
const time = z.iso.datetime()

/** The newest decisions of a scope that a run reads, at most. */
export const MOST_WINDOW = 10_000

export const learnKinds = ['reflex', 'skill'] as const
export const learnKind = z.enum(learnKinds)

export const learnRequest = z.strictObject({
  scope: scopeName,
  window: z
    .int()
    .min(1)
    .max(MOST_WINDOW)
    .optional()
    .describe('The newest decisions to learn from; that of the setting `learning` by default.'),
  kinds: z.array(learnKind).min(1).max(learnKinds.length).optional().describe('Both by default.'),
  trusted_sources: z
    .array(trustedSender)
    .max(100)
    .optional()
    .describe(
      'Senders of events that you vouch for, such as `key:ID` or `role:operator`. Any other may carry at most a third of the support of a rule.',
    ),
})
export type LearnRequest = z.infer<typeof learnRequest>

const place = z.object({ seq: count.describe('Of the log of the scope.'), trace_id: text, event_id: text })
/** The source of a number. */
export type ReadPlace = z.infer<typeof place>

const evidence = z.object({
  train: z.object({
    n: count.describe('Decisions that it was learned from: those of this kind.'),
    of: count.describe('All decisions that were read, among which it had to tell its own.'),
    exceptions: count.describe('Decisions to which its rules would apply and that differ; a table has none.'),
    from: place.nullable(),
    to: place.nullable(),
  }),
  held_out: z
    .object({
      n: count.describe('Newer decisions of this kind.'),
      covered: count.describe('Newer decisions of any kind that it would have taken.'),
      agreed: count.describe('Of these, decisions that were the same.'),
      wilson_low: z.number().describe('The lower bound of the share that agrees, one-sided, 95 %.'),
    })
    .describe('Learned from the older decisions alone, and judged on the newer ones.'),
  saves: z
    .object({ model_calls: z.number(), tokens: z.number(), cost_usd: z.number(), latency_ms: z.number() })
    .describe('Usage of the turns whose decisions are counted in `held_out.agreed`, together.'),
})
export type Evidence = z.infer<typeof evidence>

const mined = z.object({
  turns: count.describe('Turns that contain its sequence and ended well: `part=train`.'),
  support: z.number().describe('The share of all turns that ended well.'),
  success: z.number().describe('The share of its occurrences that ended well.'),
  baseline_usd: z.number().describe('The mean cost of these turns.'),
  delta_cost: z.number().describe('The change of cost against these turns; -0.4 is 40 % less.'),
  delta_p95: z.number().describe('The same for the 95th percentile of the latency.'),
  tests: z.object({ unit: z.object({ n: count, passed: count }), fuzz: z.object({ n: count, passed: count }) }),
  proof: z
    .object({
      turns: count.describe('Turns after the ones that taught it that called its tools in its order.'),
      agreed: count.describe('Of these, turns that made exactly its calls.'),
      low: z
        .number()
        .describe('The lower bound of their share, one-sided, 95 %. With the mode `auto` it acts from `learning.min_agreement`.'),
    })
    .optional()
    .describe('The skill run dry on later turns. Absent in runs from before there was a proof.'),
})
/** The evidence for a skill. */
export type Mined = z.infer<typeof mined>

export const candidate = z
  .object({
    kind: learnKind,
    id: text,
    version: text,
    state: text.describe('The state of the version now.'),
    decision: text.describe('A skill has the sequence of its tools.'),
    evidence: evidence.optional().describe('Of a reflex.'),
    mined: mined.optional().describe('Of a skill: its evidence.'),
    examples: z.array(place).describe('The first, the middle and the last decision that taught it.'),
    code: text.optional().describe('Of a reflex.'),
    manifest: z.unknown().optional().describe('Of a skill.'),
  })
  .meta({ id: 'LearnedCandidate' })
export type Candidate = z.infer<typeof candidate>

export const evidenceParts = ['train', 'agreed', 'differed'] as const
export type EvidencePart = (typeof evidenceParts)[number]
export const evidencePlace = place.meta({ id: 'EvidencePlace' })

const share = z.number().min(0).max(1)
const reach = z
  .object({
    act: text.describe('A tool, `reply`, `note`, `nothing`, or several with ` + `.'),
    bound: share.describe('The share that has to agree, by the setting `learning.min_agreement`.'),
    decisions: count.describe('Decisions of this act that were learned from.'),
    error: share.nullable().describe('The share of these in which the teacher is not to be predicted; null: not known.'),
    error_by: z
      .enum(['repeats', 'learned'])
      .nullable()
      .describe(
        '`repeats`: equal events that were decided differently. `learned`: what was learned errs so if it takes all, judged on decisions that it has not seen.',
      ),
    must_leave: share.nullable().describe('The least share that any method leaves to the slow path at this bound.'),
    decides: share.describe('The share that what was learned would have decided rightly.'),
    needs: count
      .nullable()
      .describe(
        'About how many more decisions of the scope a proof takes, if nothing disagrees; null: not known, since what was learned decides none of them.',
      ),
    saves_usd: z.number().describe('The cost of the turns that it would have spared.'),
  })
  .meta({ id: 'LearnReach' })
/** A row for each act: what can be reached. */
export type Reach = z.infer<typeof reach>

const rejected = z.object({ what: text, reason: text })
export type Rejected = z.infer<typeof rejected>

export const runStatuses = ['running', 'done', 'failed'] as const
export const runStatus = z.enum(runStatuses)
export const runPhases = ['read', 'learn', 'ask', 'register', 'done'] as const
export const startedBy = ['request', 'schedule', 'drift'] as const

const progress = z.object({
  phase: z
    .enum(runPhases)
    .describe(
      '`read`: the log. `learn`: reflexes and skills. `ask`: the slow path again about decisions that contradict the others. `register`: what was found.',
    ),
  done: count,
  of: count.nullable().describe('null: not known yet.'),
})

const episodes = z.object({
  read: count.describe('Decisions that this run read. Earlier runs read the others: nothing is read twice.'),
  used: count.describe('Decisions that it learned from.'),
  asked_again: count,
  skipped: z.array(z.object({ reason: text, n: count })),
  from: place.nullable(),
  to: place.nullable(),
  crowd: z
    .object({ sender: text, n: count, trusts: z.array(text) })
    .optional()
    .describe(
      'Set if nothing was learned and one sender whom nobody trusts sent more than a third of what it learned from. `trusts`: the value of `learning.trusted_sources` that trusts it.',
    ),
})

const summary = z.object({
  run_id: text,
  scope: text,
  status: runStatus,
  started_by: z.enum(startedBy),
  by: text.describe('The name of the key that asked for it, or `schedule`.'),
  kinds: z.array(learnKind),
  window: count,
  progress,
  episodes,
  found: count.describe('Candidates.'),
  answer: text.describe('What was learned, in words.'),
  started_at: time,
  ended_at: time.nullable(),
})

export const listedRun = summary.meta({ id: 'ListedLearnRun' })
export const learnRun = summary
  .extend({ candidates: z.array(candidate), rejected: z.array(rejected), reach: z.array(reach).optional() })
  .meta({ id: 'LearnRun' })

/** A run as it is stored: the registry has the code of candidates, and their state. */
export type StoredCandidate = Omit<Candidate, 'state' | 'code' | 'manifest'>
export type ListedRun = InMs<z.infer<typeof listedRun>, 'started_at' | 'ended_at'>
export type StoredRun = ListedRun & { candidates: StoredCandidate[]; rejected: Rejected[]; reach?: Reach[] }

export const startedRun = z
  .object({
    run_id: text,
    status: runStatus,
    already_running: z.boolean().describe('The scope was learning: this is the run that has begun.'),
  })
  .meta({ id: 'StartedLearnRun' })
export type StartedRun = z.infer<typeof startedRun>
