import { faultText, type ModelFault, causesOf } from '../base/faults.ts'

/** Replaces the client's error. A plain Error, so that the scope retries, not the AI SDK. */
export class ModelFailed extends Error {
  override readonly name = 'ModelFailed'
  readonly fault: ModelFault

  constructor(fault: ModelFault, cause: unknown) {
    super(faultText(fault), { cause })
    this.fault = fault
  }
}

/** An answer that is larger than a scope takes. Asking again would not change it. */
export class AnswerTooLong extends Error {
  override readonly name = 'AnswerTooLong'
  readonly fault: ModelFault

  constructor(most: string) {
    super(`the answer of the model is longer than ${most}, which is the limit: ask for less, such as by max_tokens`)
    this.fault = { fault: 'refused', status: null, retry_after_ms: null, detail: this.message }
  }
}

/** The text of such an error, also where another one was made of it; null for others. */
export function tooLongText(error: unknown): string | null {
  for (const { name, message } of causesOf(error)) if (name === 'AnswerTooLong') return String(message)
  return null
}

/** Thrown where a model cannot be used as the deployment is configured. */
export class ModelMisconfigured extends Error {
  override readonly name = 'ModelMisconfigured'
}

/**
 * The reason that a model may not be called now. `until` is in ms; null if no time lifts it.
 * `final`: the events do not wait.
 */
export type ModelRefusal = { ok: false; reason: 'budget' | 'outage'; until: number | null; detail: string; final?: true }

/** A plain Error, so that the AI SDK does not retry it. Its fields survive RPC. */
export class ModelRefused extends Error {
  override readonly name = 'ModelRefused'
  readonly reason: ModelRefusal['reason']
  readonly until: number | null
  readonly detail: string
  readonly final: boolean

  constructor({ reason, until, detail, final }: ModelRefusal) {
    super(`The model was not called (${reason}): ${detail}`)
    this.reason = reason
    this.until = until
    this.detail = detail
    this.final = final === true
  }
}

export function isModelRefused(error: unknown): boolean {
  return findModelRefused(error) !== null
}

/** The refusal inside an error, by name: neither RPC nor the AI SDK keeps the prototype. */
export function findModelRefused(error: unknown): ModelRefused | null {
  for (const thrown of causesOf(error)) if (isNamedRefusal(thrown)) return thrown
  return null
}

function isNamedRefusal(error: object): error is ModelRefused {
  return 'name' in error && error.name === 'ModelRefused'
}
