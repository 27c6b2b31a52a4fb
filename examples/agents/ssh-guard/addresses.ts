import { z } from 'zod'

/**
 * True for private, loopback, link-local, unspecified and multicast addresses: blocking one would
 * lock the operator out.
 */
export function isPrivateAddress(address: string): boolean {
  const literal = address.includes(':') ? `[${address}]` : address
  // The URL parser normalises every spelling of an address.
  const host = URL.parse(`http://${literal}/`)?.hostname
  if (host === undefined) throw new TypeError(`${address} is not an address`)
  if (!host.startsWith('[')) return PRIVATE_V4.test(host)
  const inner = host.slice(1, -1)
  const embedded = /^::(?:ffff:)?([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(inner)
  if (embedded) return isPrivateAddress(dotted(embedded[1], embedded[2]))
  return PRIVATE_V6.test(inner)
}

const PRIVATE_V4 = /^(?:0|10|127|169\.254|192\.168|172\.(?:1[6-9]|2\d|3[01])|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])|2(?:2[4-9]|[345]\d))\./
const PRIVATE_V6 = /^(?:::1?$|f[cd]|fe[89a-f]|ff)/

/** An IPv4 address inside an IPv6 one (`::ffff:a00:1`), in dotted notation. */
function dotted(...halves: (string | undefined)[]): string {
  const bytes = halves.map((half) => Number.parseInt(half ?? '0', 16)).flatMap((half) => [half >> 8, half & 0xff])
  return bytes.join('.')
}

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
