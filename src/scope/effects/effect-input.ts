import { z } from 'zod'
import type { ToolDefinition } from '../../tools/define-tool.ts'
import { byteLength } from '../../base/byte-length.ts'
import { limits } from '../../base/limits.ts'

/**
 * What a tool is given, as its schema has it. Throws where it does not fit, or is larger than what
 * can be journalled.
 */
export function effectInput({ tool, definition, input }: { tool: string; definition: ToolDefinition; input: unknown }): unknown {
  const parsed = definition.input.safeParse(input)
  if (!parsed.success) throw new TypeError(`tool ${tool} was called with bad input: ${z.prettifyError(parsed.error)}`)
  const bytes = byteLength(JSON.stringify(parsed.data) ?? '')
  if (bytes <= limits.arguments_bytes) return parsed.data
  throw new TypeError(`the input of tool ${tool} takes ${bytes} bytes as JSON; at most ${limits.arguments_bytes} are allowed`)
}
