import { z } from 'zod'

/** So many addresses of one network are no coincidence. */
const LEAST_ADDRESSES = 3

/** A network of 256 addresses, several of which attacked. */
export const attackedFrom = z.object({ network: z.string(), addresses: z.array(z.string()) })
export type AttackingNetwork = z.infer<typeof attackedFrom>

/** The IPv4 networks that several of these addresses are in, as the addresses came. */
export function attackingNetworks(addresses: readonly string[]): AttackingNetwork[] {
  const v4 = Array.from(new Set(addresses)).filter((address) => address.includes('.') && !address.includes(':'))
  const byNetwork = Map.groupBy(v4, (address) => `${address.split('.').slice(0, 3).join('.')}.0/24`)
  return Array.from(byNetwork, ([network, members]) => ({ network, addresses: members })).filter(
    ({ addresses: members }) => members.length >= LEAST_ADDRESSES,
  )
}
