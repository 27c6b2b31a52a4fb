import { ROLE } from '../../../contract/principal.ts'
import { holds } from '../../../tools/origins/origin-of.ts'
import type { Episode } from '../episode.ts'
import { type Bits, indexesOf } from './facts/bits.ts'

export type Sent = Pick<Episode, 'source' | 'role'>

const holdsRole = ({ source, role }: Sent, trusted: string): boolean => holds({ sender: source, roles: role ? [role] : [] }, trusted)

/** True if this is its sender, or a role that its sender had. */
export const isFrom = (sent: Sent, trusted: string): boolean => sent.source === trusted || holdsRole(sent, trusted)

/**
 * The senders that may teach alone: by their names, or by a role that they had in all of these
 * episodes.
 */
export function trustedAmong(episodes: readonly Sent[], trusted: readonly string[]): Set<string> {
  const isHeld = (sent: Sent) => trusted.some((one) => holdsRole(sent, one))
  const others = new Set(episodes.flatMap((one) => (isHeld(one) ? [] : [one.source])))
  const names = trusted.filter((one) => !one.startsWith(ROLE))
  return new Set([...names, ...episodes.flatMap(({ source }) => (others.has(source) ? [] : [source]))])
}

/** True if no sender has more than a third of these episodes: it could teach what it likes. */
export type Crowd = (support: Bits) => boolean

const LARGEST_SHARE = 1 / 3

export function crowdOf(episodes: readonly Episode[], trusted: ReadonlySet<string>): Crowd {
  const numbers = new Map<string, number>()
  const sources = Int32Array.from(episodes, ({ source }) => {
    if (trusted.has(source)) return -1
    const number = numbers.get(source) ?? numbers.size
    numbers.set(source, number)
    return number
  })
  const counts = new Int32Array(numbers.size)
  return (support) => {
    const indexes = indexesOf(support)
    const most = indexes.length * LARGEST_SHARE
    let isCarried = false
    for (const index of indexes) {
      const source = sources[index] ?? -1
      if (source >= 0 && (counts[source] = (counts[source] ?? 0) + 1) > most) isCarried = true
    }
    for (const index of indexes) counts[sources[index] ?? -1] = 0
    return !isCarried
  }
}
