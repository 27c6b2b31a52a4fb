import { z } from 'zod'

/**
 * One mistake in the input. `index` is the event's place in a batch; `path` is as in
 * `meta.trace_id` or `items[0].name`, and empty where the whole input is meant.
 */
export type FieldError = { index?: number; path: string; message: string }

export function fieldError(path: PropertyKey[], message: string, index?: number): FieldError {
  return { ...(index === undefined ? {} : { index }), path: z.core.toDotPath(path), message }
}
