import type { FieldError } from '../../base/check-json.ts'
import type { DecidedBy } from '../../contract/principal.ts'

type CommandAnswer = { ok: true; status: string } | { ok: false; message: string }
/** `id` names it in the answer. `take` does it, for a key that may decide, or null. */
export type ReadCommand = { id: string; take: (by: DecidedBy | null) => Promise<CommandAnswer> }
/** Parses a message of this type. Never throws. */
type SocketCommand = (
  input: Record<string, unknown>,
) => ({ ok: true } & ReadCommand) | { ok: false; id: string | null; errors: FieldError[] }
/** Messages of sockets that are not events, by their type. */
export type SocketCommands = Readonly<Record<string, SocketCommand>>

/** The id in a message that could not be parsed. */
export function idIn(input: Record<string, unknown>, field: string): string | null {
  const id = input[field]
  return typeof id === 'string' ? id.slice(0, 128) : null
}
