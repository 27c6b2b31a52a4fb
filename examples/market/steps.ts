import { setTimeout as wait } from 'node:timers/promises'
import type { Api } from '../../cli/lib/api.ts'
import { CliError } from '../../cli/lib/cli-error.ts'
import type { Account } from '../../src/features/market/contract/account.ts'
import type { Deal } from '../../src/features/market/contract/deal.ts'

/** It learns, and sells. */
export const SELLER = 'desk/lisbon'
/** It buys, and sells on. */
export const BUYER = 'desk/oslo'
/** It buys from the buyer. */
export const THIRD = 'desk/bergen'

const POLL_MS = 200
const MOST_POLLS = 150

export type Watch = { signal: AbortSignal; onProgress: (text: string) => void }

export const pathOf = (scope: string): string => `/v1/scopes/${encodeURIComponent(scope)}`
export const patch = (api: Api, scope: string, settings: object): Promise<unknown> =>
  api.json(pathOf(scope), { method: 'PATCH', body: settings })
export const accountPath = (id: string): string => `/v1/ledger/accounts/${encodeURIComponent(id)}`
export const accountOf = (api: Api, id: string): Promise<Account> => api.json<Account>(accountPath(id))
export const dealOf = (api: Api, id: string): Promise<Deal> => api.json<Deal>(`/v1/market/deals/${encodeURIComponent(id)}`)

/** Makes an offer and accepts it as a person of the seller would. */
export async function agree(api: Api, listing_id: string, offer: { id: string; buyer: string }): Promise<Deal> {
  await api.json(`/v1/market/listings/${listing_id}/offers`, { method: 'POST', body: offer })
  return api.json<Deal>(`/v1/market/deals/${encodeURIComponent(offer.id)}/accept`, { method: 'POST', body: {} })
}

/** The opening grant arrives with the next replication of the scope. */
export async function funded(api: Api, { scope, grant }: { scope: string; grant: number }, watch: Watch): Promise<void> {
  const arrived = async () => {
    const account = await accountOf(api, `scope:${scope}`).catch(() => null)
    return account?.balance === grant ? account : null
  }
  await until(arrived, `the opening grant of ${scope} arrives`, watch)
}

/** The first result that is not null. */
export async function until<Found>(look: () => Promise<Found | null>, what: string, { signal }: Watch, most = MOST_POLLS): Promise<Found> {
  for (let polls = 0; polls < most; polls += 1) {
    const found = await look()
    if (found !== null) return found
    await wait(POLL_MS, undefined, { signal })
  }
  throw new CliError(`This did not happen: ${what}.`)
}
