import { createHash } from 'node:crypto'
import type { CallKeys } from '../contract/reflex.ts'
import type { ToolDefinition } from './define-tool.ts'

/** SHA-256 of a tool's arguments as its schema has parsed them. */
export const argumentsHash = (input: unknown): string =>
  createHash('sha256')
    .update(JSON.stringify(input) ?? 'undefined')
    .digest('hex')

/** Identifies a call by the tool's key and its arguments; null if the arguments are invalid. */
export function callKeys(tool: ToolDefinition, args: unknown, scope: string): CallKeys | null {
  const parsed = tool.input.safeParse(args)
  if (!parsed.success) return null
  return { idempotence_key: tool.idempotence_key?.(parsed.data, scope) ?? null, arguments_hash: argumentsHash(parsed.data) }
}
