import { socketAddress } from '../../../client/address.ts'
import type { Watcher } from '../../../src/contract/watcher.ts'
import { Follower, type FollowOptions } from '../../../client/follower.ts'
import { returns } from './away.ts'
import { part, post } from './request.ts'

type Following = Pick<FollowOptions, 'onEntry' | 'onOpen'> & {
  /** The last `seq` seen. */
  after: number
  /** The connection is lost; another one is tried. */
  onLost: () => void
  /** Another attempt would be refused, too. */
  onRefused: (why: string) => void
}

const WATCHER: Watcher = 'reflex-dashboard'

class Refused extends Error {}
const REFUSALS = new Set([400, 401, 403, 409])

/** Follows a scope's log; returns a function that ends it. It opens with tickets, not the key. */
export function followScope(scope: string, { onLost, onRefused, ...options }: Following): () => void {
  const address = async (after: number | null) => {
    const answer = await post<{ ticket: string }>(`/v1/scopes/${part(scope)}/tickets`)
    if (answer.ok)
      return socketAddress(location.origin, scope, { ticket: answer.value.ticket, connection_id: WATCHER, after: String(after) })
    const { status, detail } = answer.problem
    throw REFUSALS.has(status) ? new Refused(detail) : new Error(detail)
  }
  const follower = new Follower({
    ...options,
    address,
    onLost: (loss) => {
      if (!('error' in loss && loss.error instanceof Refused)) return onLost()
      end()
      onRefused(loss.error.message)
    },
  })
  const forget = returns.subscribe(() => follower.retry())
  const end = () => {
    forget()
    follower.end()
  }
  return end
}
