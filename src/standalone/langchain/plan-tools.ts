import { dynamicTool, jsonSchema, type ToolSet } from 'ai'

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
