/** A tool call that needs a person, as it spends so much. It runs with exactly this input. */
export type Payment = { tool: string; input: Record<string, unknown>; to: string; amount: number }
