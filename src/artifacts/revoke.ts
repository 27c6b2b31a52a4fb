import { messageOf } from '../base/error-text.ts'
import { warn } from '../base/warn.ts'
import { LEDGER, type Revocation } from '../features/market/contract/ledger-api.ts'
import type { Env } from '../env.ts'

/** Ends the licences of a version that runs no more. If the Ledger is away, the sweep does it. */
export async function revokeLicences(env: Env, { artifact, hash, reason }: Revocation): Promise<void> {
  try {
    await env.LEDGER.getByName(LEDGER).revoke({ artifact, hash, reason })
  } catch (error) {
    warn({ message: 'failed to revoke licences; the sweep will retry', artifact, error: messageOf(error) })
  }
}
