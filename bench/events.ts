import { randomUUID } from 'node:crypto'

type LogLine = { id: string; type: 'log.line'; scope: string; source: string; timestamp: string; host: string; line: string }

/**
 * Lines of SSH logins, none of which leads to a block: the filter looks at each, the trigger at what passes, and says no. Made before the clock starts, and
 * the same for both sides.
 */
export function loginLines(count: number, scopeOf: (index: number) => string): LogLine[] {
  const timestamp = new Date().toISOString()
  return Array.from({ length: count }, (_, index) => {
    const scope = scopeOf(index)
    const address = `198.51.${index % 100}.${index % 251}`
    const line = `Dec 10 06:55:46 web-1 sshd[${24_200 + index}]: Accepted publickey for user${index % 50} from ${address} port ${40_000 + index} ssh2`
    return { id: randomUUID(), type: 'log.line', scope, source: 'bench', timestamp, host: 'web-1', line }
  })
}

export function batches<Item>(items: readonly Item[], size: number): Item[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) => items.slice(index * size, (index + 1) * size))
}
