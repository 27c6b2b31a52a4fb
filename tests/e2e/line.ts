import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

type Fault = 'answers lost' | 'requests lost' | 'answers held'
export type Line = {
  url: string
  /** The fault of all connections from now on, or null. `held` arrives later, `lost` never does. */
  fault: (fault: Fault | null) => void
  /** Bytes that were lost so far. */
  readonly lost: number
  /** Ends every connection at once. */
  cut: () => void
  stop: () => void
}

/**
 * A connection from a client to the server at `port`, with the faults of real networks. It breaks
 * when the server dies.
 */
export async function lineTo(port: number): Promise<Line> {
  const pairs = new Set<{ client: Socket; server: Socket }>()
  let current: Fault | null = null
  let lost = 0
  const listener = createServer((client) => {
    const pair = { client, server: connect(port, '127.0.0.1') }
    const { server } = pair
    pairs.add(pair)
    server.on('data', (bytes) => {
      if (current === 'answers lost') lost += bytes.length
      else if (!client.write(bytes)) server.pause()
    })
    client.on('drain', () => {
      if (current !== 'answers held') server.resume()
    })
    client.on('data', (bytes) => {
      if (current === 'requests lost') lost += bytes.length
      else server.write(bytes)
    })
    for (const socket of [client, server]) {
      socket.on('error', () => {})
      socket.on('close', () => {
        pairs.delete(pair)
        client.destroy()
        server.destroy()
      })
    }
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const cut = () => {
    for (const { client, server } of pairs) {
      client.destroy()
      server.destroy()
    }
  }
  return {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    fault: (fault) => {
      current = fault
      for (const { server } of pairs) {
        if (fault === 'answers held') server.pause()
        else server.resume()
      }
    },
    get lost() {
      return lost
    },
    cut,
    stop: () => {
      listener.close()
      cut()
    },
  }
}
