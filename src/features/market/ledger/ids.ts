import { createHash } from 'node:crypto'
import { AGENT_IDS } from '../contract/transfer.ts'

/** Beginnings of ids that only the ledger and the market use. */
const RESERVED = /^(?:deal|meter|royalty|grant|trial|invoke|timeout):/
/** No account has it in its id. */
const BEFORE_DEBIT = '\n'

export const isReserved = (id: string): boolean => RESERVED.test(id)

/**
 * A transfer as its client names it: ids belong to the account that pays. For the end of a pending
 * transfer that is the account whose money is pending.
 */
export type Named = { id: string; debit: string }

/**
 * The id under which a transfer is kept. Ids of the market and of agents are unique already.
 * Before ids belonged to accounts, all were kept as they are: such rows are still found.
 */
export const keptId = ({ id, debit }: Named): string => (isReserved(id) || id.startsWith(AGENT_IDS) ? id : `${id}${BEFORE_DEBIT}${debit}`)

/**
 * An end whose request names no debit account, which no other account's pending transfer of the
 * same id may have once the one that it ended has left.
 */
export const endOfAny = (id: string, pending_id: string): string => `${id}${BEFORE_DEBIT}${BEFORE_DEBIT}${pending_id}`

/** The id under which the end of a pending transfer is kept that does not exist. */
export const idOfCaller = (id: string, { counted, caller = '' }: { counted?: string | undefined; caller?: string | undefined }): string =>
  keptId({ id, debit: `@${counted ?? caller}` })

/** The id that the client gave, of a kept id with its debit account. */
export function clientId(kept: string, debit: string): string {
  const suffix = `${BEFORE_DEBIT}${debit}`
  return kept.endsWith(suffix) ? kept.slice(0, -suffix.length) : kept
}

/** The range in which the kept ids of a client's id are, whatever the account. */
export const keptRange = (id: string): [from: string, to: string] => [`${id}${BEFORE_DEBIT}`, `${id}\v`]

/** 132 bits, for ids that are used up. */
export const digestOfId = (kept: string): string => createHash('sha256').update(kept).digest('base64url').slice(0, 22)
