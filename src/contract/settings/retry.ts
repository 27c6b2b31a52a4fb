import { z } from 'zod'

const ms = (most: number) => z.int().min(1).max(most)
const fields = {
  max_attempts: z
    .int()
    .min(1)
    .max(100)
    .describe('Maximum number of attempts before an event becomes a dead letter. The same setting as `max_attempts`.'),
  backoff_ms: ms(3_600_000).describe('Delay before the first retry, doubled for each further one and shortened at random by up to half.'),
  max_backoff_ms: ms(86_400_000).describe('Maximum delay between two attempts.'),
  model_outage_s: ms(2_592_000).describe(
    'Seconds that an event waits for a busy or unreachable model provider before it becomes a dead letter. Waiting is not an attempt.',
  ),
}

export const retrySettings = z.strictObject(fields).describe('How failures are retried. Omitted fields have their defaults.')
export type RetrySettings = z.infer<typeof retrySettings>

/** A patch changes each field separately; null restores the default. */
export const retryPatch = z
  .strictObject({
    max_attempts: fields.max_attempts.nullable().optional(),
    backoff_ms: fields.backoff_ms.nullable().optional(),
    max_backoff_ms: fields.max_backoff_ms.nullable().optional(),
    model_outage_s: fields.model_outage_s.nullable().optional(),
  })
  .describe('How failures are retried. Omitted fields stay unchanged.')
type RetryPatch = z.infer<typeof retryPatch>

export const onToolError = z.enum(['continue', 'fail']).meta({
  description:
    "How a turn with a failed tool call ends. `continue`: with the trigger's result; the outcome lists the failed calls. " +
    '`fail`: the turn fails and is retried; calls that succeeded are not repeated.',
  examples: ['fail'],
})

export const defaultRetry: RetrySettings = { max_attempts: 3, backoff_ms: 1000, max_backoff_ms: 300_000, model_outage_s: 21_600 }

/** The settings of retries. `retry.max_attempts` and `max_attempts` are one setting. */
type Layer = { max_attempts?: number | null | undefined; retry?: RetryPatch | null | undefined }

/** Applies a patch; the result has the attempts in `max_attempts` only. */
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

/** True if a patch sets the one setting to two values. */
export const namesTwoAttempts = ({ max_attempts, retry }: Layer): boolean =>
  max_attempts !== undefined && retry?.max_attempts !== undefined && max_attempts !== retry.max_attempts
