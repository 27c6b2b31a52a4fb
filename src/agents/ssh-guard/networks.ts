import { z } from 'zod'

/** The number of attacking addresses in one network that is not a coincidence. */
const LEAST_ADDRESSES = 3

/** A network of 256 addresses, several of which attacked. */
export const attackedFrom = z.object({ network: z.string(), addresses: z.array(z.string()) })
export type AttackingNetwork = z.infer<typeof attackedFrom>

/** Returns the IPv4 networks that contain several of these addresses, in the addresses' order. */
export function attackingNetworks(addresses: readonly string[]): AttackingNetwork[] {
  const v4 = Array.from(new Set(addresses)).filter((address) => address.includes('.') && !address.includes(':'))
  const byNetwork = Map.groupBy(v4, (address) => `${address.split('.').slice(0, 3).join('.')}.0/24`)
  return Array.from(byNetwork, ([network, members]) => ({ network, addresses: members })).filter(
    ({ addresses: members }) => members.length >= LEAST_ADDRESSES,
  )
}
