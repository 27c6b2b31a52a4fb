/**
 * A call of a market tool that needs a person. It runs with exactly this input. `gives`: what the
 * account gives away for the amount; without it the account pays the amount.
 */
export type Payment = { tool: string; input: Record<string, unknown>; to: string; amount: number; gives?: string }
