import { z } from 'zod'
import { eventType, type Event } from '../core/event.ts'
import { questions, state } from './decision-answers.ts'

export const DECISION_ASKED = 'decision.asked'

/**
 * Typed questions that the scope answers: by a reflex, else by the decision model. The event never
 * joins the context, and no turn considers it.
 */
export const decisionAsked = eventType(DECISION_ASKED, {
  model: z.string().min(1).max(200).optional(),
  state,
  questions,
  /** The hash of the request under an idempotency key: fields may be redacted, this is not. */
  request_hash: z.string().max(64).optional(),
})
export type DecisionAsked = z.infer<typeof decisionAsked>

/** Parsed by its schema when it was accepted. */
export const isAsked = (event: Event): event is DecisionAsked => event.type === DECISION_ASKED
