import { z } from 'zod'

export const risks = ['inside', 'outside', 'final'] as const
export const risk = z
  .enum(risks)
  .describe(
    '`inside`: a reply, a note or nothing. `outside`: the effect can be undone or repeated. `final`: neither; a person must allow it.',
  )
export type Risk = z.infer<typeof risk>
