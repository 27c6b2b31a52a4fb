import { createHash } from 'node:crypto'
import type { CallKeys } from '../contract/reflex.ts'
import type { ToolDefinition } from './define-tool.ts'

/** A key that a tool or a plan declares with this prefix holds in all scopes of the deployment. */
const GLOBAL = 'global:'
export const isGlobalKey = (key: string): boolean => key.startsWith(GLOBAL)

/**
 * The reason why a key may not be used, or null: only its template declares that a key is
 * deployment-wide, never a value in it.
 */
export const undeclaredGlobal = (template: string, key: string): string | null =>
  isGlobalKey(key) && !isGlobalKey(template) ? `a value must not turn an idempotency key into a deployment-wide one (${GLOBAL})` : null

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

/** Names a call of a tool without keys by the fields that its undoing matches. */
export function namedBy(match: readonly string[], input: unknown): string {
  const fields = input as Readonly<Record<string, unknown>>
  return `fields:${argumentsHash(match.map((name) => fields[name] ?? null))}`
}
