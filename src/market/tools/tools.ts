import type { ToolDefinition } from '../../tools/define-tool.ts'
import { contractTools } from './contract-tools.ts'
import { Desk, type DeskParts } from './desk.ts'
import { escrowTools } from './escrow-tools.ts'
import { ledgerTools } from './ledger-tools.ts'
import { storeTools } from './store-tools.ts'

/** The tools of the market, for models and for reflexes by `invoke_artifact`. */
export function marketTools(parts: DeskParts): Readonly<Record<string, ToolDefinition>> {
  const desk = new Desk(parts)
  return { ...ledgerTools(desk), ...storeTools(desk), ...escrowTools(desk), ...contractTools(desk) }
}
