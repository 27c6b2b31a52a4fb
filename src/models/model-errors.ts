import { tellFault, type ModelFault, causesOf } from '../base/faults.ts'

/**
 * Thrown in the place of what the provider's client threw, once it is known whose fault it is. A
 * plain Error, so that the AI SDK does not retry it: the scope does, for all of its events at once.
 */
export class ModelFailed extends Error {
  override readonly name = 'ModelFailed'
  readonly fault: ModelFault

  constructor(fault: ModelFault, cause: unknown) {
    super(tellFault(fault), { cause })
    this.fault = fault
  }
}

/** Thrown where a model cannot be used as the deployment is configured. */
export class ModelMisconfigured extends Error {
  override readonly name = 'ModelMisconfigured'
}

/**
 * Why a model may not be called now: the scope's budget is spent, or its provider is not available.
 * `until` is milliseconds since the epoch, null when no time will lift it.
 */
export type Refusal = { ok: false; reason: 'budget' | 'outage'; until: number | null; detail: string }

/**
 * Thrown instead of calling a model. A plain Error, so that the AI SDK doesn't retry it; its fields
 * are own properties, so that they survive RPC.
 */
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

/**
 * The refusal inside whatever the AI SDK or RPC made of it: by name, for neither keeps the
 * prototype for sure.
 */
export function findModelRefused(error: unknown): ModelRefused | null {
  for (const thrown of causesOf(error)) if (isNamedRefusal(thrown)) return thrown
  return null
}

function isNamedRefusal(error: object): error is ModelRefused {
  return 'name' in error && error.name === 'ModelRefused'
}
