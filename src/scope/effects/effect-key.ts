import type { ToolDefinition } from '../../tools/define-tool.ts'
import { limits } from '../../base/limits.ts'

type Asked = { tool: string; definition: ToolDefinition; input: unknown; key?: string | null }

/** The key under which an effect happens once: the tool's own, else the one that whoever asks gives. */
export function effectKey({ tool, definition, input, key: given = null }: Asked, scope: string): string | null {
  if (!definition.idempotence_key) return given
  const key: unknown = definition.idempotence_key(input, scope)
  if (typeof key === 'string' && key.length > 0 && key.length <= limits.idempotence_key) return key
  throw new TypeError(`the idempotency key of tool ${tool} must be a string of 1 to ${limits.idempotence_key} characters`)
}
