import type { ToolDefinition } from '../../tools/define-tool.ts'
import type { Unit } from '../storage/unit.ts'
import type { EffectJournal } from './effect-journal.ts'
import type { Reflexes } from '../reflexes/wiring.ts'

export type UndoParts = Pick<Reflexes, 'scope' | 'action_keys' | 'toolbox'> & {
  journal: EffectJournal
}

/**
 * Lets an undone effect happen again by releasing its key in the journal and in reflexes' action
 * keys. Effects of unknown outcome keep their key. Called in the unit that ends the undo tool.
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
