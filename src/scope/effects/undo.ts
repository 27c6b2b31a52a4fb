import type { ToolDefinition } from '../../tools/define-tool.ts'
import type { Unit } from '../storage/unit.ts'
import type { EffectJournal } from './effect-journal.ts'
import type { Reflexes } from '../reflexes/wiring.ts'

export type UndoParts = Pick<Reflexes, 'scope' | 'action_keys' | 'toolbox'> & {
  journal: EffectJournal
}

/**
 * Releases the key of an undone effect, so that it may happen again. Called in the unit that ends
 * the undo tool. Effects of unknown outcome keep their key.
 */
export function releaseUndone(
  unit: Unit,
  { scope, journal, toolbox, action_keys }: UndoParts,
  { undoes }: ToolDefinition,
  input: unknown,
): void {
  const undone = undoes && toolbox.all[undoes.tool]
  if (!undoes || !undone?.idempotence_key) return
  const fields = Object.entries(input as Record<string, unknown>).filter(([name]) => undoes.match.includes(name))
  const key = undone.idempotence_key(Object.fromEntries(fields), scope)
  journal.releaseKey(unit, undoes.tool, key)
  action_keys.release(unit, undoes.tool, key)
}
