import { z } from 'zod'
import type { ToolDefinition } from './define-tool.ts'

/** `inverse`: the tool that undoes it for equal values of these arguments. */
export type ToolFacts = { repeatable: boolean; inverse: { tool: string; match: readonly string[] } | null }
export type Tools = ReadonlyMap<string, ToolFacts>

/** Facts that a person gives about tools: which only read, and which undo another. */
export const givenFacts = z.record(
  z.string(),
  z.strictObject({
    repeatable: z.boolean().exactOptional(),
    undoes: z.strictObject({ tool: z.string(), match: z.array(z.string()) }).exactOptional(),
  }),
)

/** The facts about tools that a compiler needs, from their own definitions. */
export function factsOf(definitions: Readonly<Record<string, Pick<ToolDefinition, 'repeatable' | 'undoes'>>>): Tools {
  const inverses = new Map(
    Object.entries(definitions).flatMap(([tool, { undoes }]) => (undoes ? [[undoes.tool, { tool, match: undoes.match }] as const] : [])),
  )
  return new Map(
    Object.entries(definitions).map(([tool, { repeatable = false }]) => [tool, { repeatable, inverse: inverses.get(tool) ?? null }]),
  )
}
