import { z } from 'zod'
import { eventType, type Event } from '../core/event.ts'
import { DECISION_ASKED } from './decision-asked.ts'

export const MODEL_ASKED = 'model.asked'
/** The interfaces of providers that a scope answers in. */
const providerApis = ['openai.chat', 'openai.responses', 'anthropic.messages'] as const
export type ProviderApi = (typeof providerApis)[number]

/**
 * A request to a model, by an agent outside that runs its own tools. It joins no context. Its
 * fields are what a decision on it may depend on; the whole request is a part of the log.
 */
export const modelAsked = eventType(MODEL_ASKED, {
  api: z.enum(providerApis),
  /** The model that the caller named. */
  model: z.string().max(200),
  /** The last words of the user. */
  content: z.string(),
  /** Names of the tools that the caller offers, and of those that it has run for these words. */
  tools: z.array(z.string()),
  called: z.array(z.string()),
  /** The output of the newest call, as JSON or as text; null before the first. */
  output: z.json(),
  /** The number of times that the user spoke. */
  turns: z.int(),
  /** Names the instructions and the tools, in letters. */
  instructions: z.string().max(64),
  /** The hash of the request in the parts of the log. */
  request_hash: z.string().max(64),
})
export type ModelAsked = z.infer<typeof modelAsked>

/** Made by the scope alone. */
export const isModelAsked = (event: Event): event is ModelAsked => event.type === MODEL_ASKED

/** True for a request that is answered beside the turns of the scope, and joins no context. */
export const isAnsweredBeside = ({ type }: Pick<Event, 'type'>): boolean => type === DECISION_ASKED || type === MODEL_ASKED

/** Tools of callers, which run them: their names in a scope begin so. */
export const CALLER_TOOL = 'caller.'
