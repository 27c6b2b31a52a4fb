import { createHash } from 'node:crypto'
import type { KeyOf } from '../contract/reflex.ts'
import type { ToolDefinition } from './define-tool.ts'

/** SHA-256 of a tool's arguments as its schema has parsed them. */
export const argumentsHash = (input: unknown): string =>
  createHash('sha256')
    .update(JSON.stringify(input) ?? 'undefined')
    .digest('hex')

/** Names calls as the effect lane does: by the tool's own key, and by its arguments. */
export const toolKeys =
  (tools: Readonly<Record<string, ToolDefinition>>, scope: string): KeyOf =>
  (name, args) => {
    const tool = Object.hasOwn(tools, name) ? tools[name] : undefined
    const parsed = tool?.input.safeParse(args)
    if (!tool || !parsed?.success) return null
    return { idempotence_key: tool.idempotence_key?.(parsed.data, scope) ?? null, arguments_hash: argumentsHash(parsed.data) }
  }
