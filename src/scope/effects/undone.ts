import type { ToolDefinition } from '../../tools/define-tool.ts'
import type { Database } from '../database.ts'
import type { DoneKeys } from './done-keys.ts'

type Parts = { scope: string; database: Database; done_keys: DoneKeys; tools: () => Readonly<Record<string, ToolDefinition>> }

/**
 * What a tool took back may be done again: the journal answers for it no longer, and a reflex may ask for it under the same key. Within the unit of work that
 * records the tool's end, so that a crash leaves both, or neither. Effects that may or may not have happened keep their key: they run again under it.
 */
export function releaseUndone({ scope, database, done_keys, tools }: Parts, { undoes }: ToolDefinition, input: unknown): void {
  const undone = undoes && tools()[undoes.tool]
  if (!undoes || !undone?.idempotence_key) return
  const fields = Object.entries(input as Record<string, unknown>).filter(([name]) => undoes.match.includes(name))
  const key = undone.idempotence_key(Object.fromEntries(fields), scope)
  if (done_keys.release({ kind: 'effect', tool: undoes.tool }, key)) return
  const released = database.all(
    `UPDATE effects SET idempotence_key = NULL WHERE tool = ? AND idempotence_key = ? AND status = 'ok' RETURNING id`,
    undoes.tool,
    key,
  )
  // A look through all actions: only where there is something to find.
  if (released.length === 0) return
  const same = fields.map(() => 'AND task->>? IS ?').join(' ')
  database.all(
    `UPDATE actions SET idempotence_key = NULL WHERE idempotence_key IS NOT NULL AND ended_at IS NOT NULL AND task->>'$.work.tool' = ? ${same}`,
    undoes.tool,
    ...fields.flatMap(([name, value]) => [`$.work.input.${name}`, value as string | number]),
  )
}
