/** An expected outcome: `ok` with a value, or the reason for a failure. */
export type Result<Value extends object = object, Failure extends object = { detail: string }> =
  | ({ ok: true } & Value)
  | ({ ok: false } & Failure)

/** A failure with a reason to switch on and a sentence for people. */
export type Refused<Reason extends string> = { ok: false; reason: Reason; detail: string }
export const refuse = <Reason extends string>(reason: Reason, detail: string): Refused<Reason> => ({ ok: false, reason, detail })
