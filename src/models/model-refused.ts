/** Why a model may not be called now. `until` is milliseconds since the epoch, null when no time will lift it. */
export type Refusal = { ok: false; reason: 'budget'; until: number | null; detail: string }

/** Thrown instead of calling a model. A plain Error, so that the AI SDK doesn't retry it; its fields are own properties, so that they survive RPC. */
export class ModelRefused extends Error {
  override readonly name = 'ModelRefused'
  readonly reason: Refusal['reason']
  readonly until: number | null
  readonly detail: string

  constructor({ reason, until, detail }: Refusal) {
    super(`The model was not called (${reason}): ${detail}`)
    this.reason = reason
    this.until = until
    this.detail = detail
  }
}

export function isModelRefused(error: unknown): boolean {
  return findModelRefused(error) !== null
}

/** The refusal inside whatever the AI SDK or RPC made of it: by name, for neither keeps the prototype for sure. */
export function findModelRefused(error: unknown, seen = new Set<unknown>()): ModelRefused | null {
  if (typeof error !== 'object' || error === null || seen.has(error)) return null
  seen.add(error)
  if (isNamedRefusal(error)) return error
  const { cause, lastError, errors } = error as { cause?: unknown; lastError?: unknown; errors?: unknown }
  for (const inner of [cause, lastError, ...(Array.isArray(errors) ? errors : [])]) {
    const found = findModelRefused(inner, seen)
    if (found !== null) return found
  }
  return null
}

function isNamedRefusal(error: object): error is ModelRefused {
  return 'name' in error && error.name === 'ModelRefused'
}
