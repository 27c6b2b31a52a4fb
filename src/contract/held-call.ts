import type { AnchoredCall } from './settings/anchors.ts'

/**
 * A call of a tool that pays, which needs a person. It runs with exactly this input. `gives`: what
 * the account gives away for the amount; without it the account pays the amount.
 */
export type Payment = { tool: string; input: Record<string, unknown>; to: string; amount: number; gives?: string }

/** A call of a tool that a person is asked about. */
export type AskedCall = { payment: Payment } | { call: AnchoredCall }
