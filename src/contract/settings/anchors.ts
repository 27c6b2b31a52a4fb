import { z } from 'zod'
import type { Doubt } from '../origin.ts'
import { setting } from '../setting.ts'

const pattern = z.string().trim().min(1).max(256)

const anchor = z.strictObject({
  name: z.string().trim().min(1).max(100).meta({ description: 'What people call the resource.' }),
  match: z
    .array(pattern)
    .min(1)
    .max(50)
    .meta({ description: 'Values that the input of a call has when the call is about the resource. `*` stands for any characters.' }),
  tools: z.array(pattern).min(1).max(50).optional().meta({ description: 'Names or patterns of the tools that ask. Unset: all.' }),
})
export type Anchor = z.infer<typeof anchor>

export const anchorsSetting = setting(
  z.array(anchor).max(50),
  'Resources on which no agent, reflex or skill acts without a person. Each value within the input of a tool call is compared as a whole, without regard ' +
    'to case. A call that matches waits for an approval. See docs/skills.md.',
  [{ name: 'the production database', match: ['db-prod-*', '*://prod.example.com/*'], tools: ['db.*', 'http.*'] }],
)

/**
 * A call of any tool that needs a person because its input touches `anchors`, by name, or because
 * no trusted origin names its destinations.
 */
export type AnchoredCall = {
  tool: string
  input: Record<string, unknown>
  anchors: string[]
  origins?: Doubt[]
  named_by?: Record<string, string>
}
