import { z } from 'zod'

const ms = (most: number) => z.int().min(1).max(most)
const fields = {
  max_attempts: z
    .int()
    .min(1)
    .max(100)
    .describe('How often an event is tried before it goes to the dead letters. The same setting as `max_attempts` beside `retry`.'),
  backoff_ms: ms(3_600_000).describe(
    'The pause before the first retry; it doubles with each further one. Each pause is shortened at random, by half at most.',
  ),
  max_backoff_ms: ms(86_400_000).describe('The longest pause between two tries.'),
  model_outage_s: ms(2_592_000).describe(
    'How long, in seconds, an event waits for a model provider that is busy or out of reach before it goes to the dead letters. Waiting costs no attempt.',
  ),
}

export const retrySettings = z.strictObject(fields).describe('How failures are retried. What is not named here has its default.')
export type RetrySettings = z.infer<typeof retrySettings>

/** A patch of single fields; null restores the default. */
export const retryPatch = z
  .strictObject({
    max_attempts: fields.max_attempts.nullable().optional(),
    backoff_ms: fields.backoff_ms.nullable().optional(),
    max_backoff_ms: fields.max_backoff_ms.nullable().optional(),
    model_outage_s: fields.model_outage_s.nullable().optional(),
  })
  .describe('How failures are retried. What is not named stays as it is.')
export type RetryPatch = z.infer<typeof retryPatch>

export const onToolError = z.enum(['continue', 'fail']).meta({
  description:
    "What becomes of a turn in which a tool call failed. `continue`: the trigger's result stands, and the outcome names the failed calls. " +
    '`fail`: the turn fails and is retried; calls that succeeded are not repeated.',
  examples: ['fail'],
})

export const defaultRetry: RetrySettings = { max_attempts: 3, backoff_ms: 1000, max_backoff_ms: 300_000, model_outage_s: 21_600 }

/** A set of settings as far as retries go. `retry.max_attempts` and `max_attempts` are one setting. */
type Layer = { max_attempts?: number | null | undefined; retry?: RetryPatch | null | undefined }

/** A patch over a set; what is kept has the attempts in `max_attempts` alone. */
export function mergeRetry(current: Layer, patch: Layer): Layer {
  const { max_attempts: nested, ...rest } = patch.retry ?? {}
  const attempts = [patch.max_attempts, nested, patch.retry === null ? null : undefined, current.max_attempts]
  const { max_attempts: _kept, ...before } = patch.retry === null ? {} : (current.retry ?? {})
  const retry = Object.fromEntries(Object.entries({ ...before, ...rest }).filter(([, value]) => value !== null && value !== undefined))
  return { max_attempts: attempts.find((one) => one !== undefined), retry: Object.keys(retry).length > 0 ? retry : undefined }
}

/** Merges the layers, later ones first. */
export function effectiveRetry(layers: readonly Layer[]): RetrySettings {
  const { max_attempts, retry } = layers.reduce<Layer>(mergeRetry, {})
  return retrySettings.parse({ ...defaultRetry, ...retry, ...(typeof max_attempts === 'number' && { max_attempts }) })
}

/** True where a patch names the one setting twice, with two values. */
export const namesTwoAttempts = ({ max_attempts, retry }: Layer): boolean =>
  max_attempts !== undefined && retry?.max_attempts !== undefined && max_attempts !== retry.max_attempts
