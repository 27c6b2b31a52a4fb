import type { EditedInputs } from './approval.ts'
import type { AnchoredCall } from './settings/anchors.ts'

/**
 * A call of a tool that pays, which needs a person. It runs with exactly this input. `gives`: what
 * the account gives away for the amount; without it the account pays the amount.
 */
export type Payment = { tool: string; input: Record<string, unknown>; to: string; amount: number; gives?: string }

/** The subject of a question: a call of a tool, or several of one turn. */
export type AskedCall = { payment: Payment } | { call: AnchoredCall } | { calls: AnchoredCall[] }

/** The calls, in the order of their numbers, which begin at 1. */
export const callsOf = (held: AskedCall): (Payment | AnchoredCall)[] =>
  'calls' in held ? held.calls : ['payment' in held ? held.payment : held.call]

/** A call as a person was asked about it, and what they changed. The gate judges it again. */
export type EditedCall = { asked: AnchoredCall; edits: EditedInputs }
