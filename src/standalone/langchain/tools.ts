import type { BindToolsInput } from '@langchain/core/language_models/chat_models'
import { convertToOpenAITool } from '@langchain/core/utils/function_calling'
import { dynamicTool, jsonSchema, type ToolSet } from 'ai'
import { withoutMarks } from '../../skills/asp/blocks.ts'

/** Replaces the protocol's marks in the tools. Others stay the same objects. */
export const plainTools = (tools: BindToolsInput[]): BindToolsInput[] => tools.map(plainTool)

function plainTool(bound: BindToolsInput): BindToolsInput {
  const told = 'invoke' in bound ? (convertToOpenAITool(bound) as BindToolsInput) : bound
  const plain = withoutMarks(told)
  return plain === told ? bound : plain
}

/** A tool of LangChain, by its shape. */
export type ChainTool = { name: string; description?: string; invoke(input: never, options?: { signal?: AbortSignal }): Promise<unknown> }

/** Tools that check their own input: a plan's arguments go to them as they are. */
export function planTools(tools: readonly ChainTool[]): ToolSet {
  return Object.fromEntries(
    tools.map((chained) => [
      chained.name,
      dynamicTool({
        description: chained.description ?? '',
        inputSchema: jsonSchema({ type: 'object' }),
        execute: (input, { abortSignal }) => chained.invoke(input as never, abortSignal ? { signal: abortSignal } : {}),
      }),
    ]),
  )
}
