import type { Answers } from './wire.ts'

/** A call of the decision model, without its usage. */
export type DecisionMade = {
  kind: 'decision-made'
  /** The name that it is priced by. `answered_by`: as the provider names it. */
  model: string
  answered_by: string | null
  status: 'ok' | 'failed'
  answers: Answers | null
  error: string | null
}
