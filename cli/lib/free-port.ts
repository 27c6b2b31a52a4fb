import { once } from 'node:events'
import { createServer } from 'node:net'

/** Ports below those that systems give to outgoing connections, which could take one meanwhile. */
const PORTS = { first: 10_000, last: 32_000 }
const MOST_TRIES = 100
const HOST = '127.0.0.1'

/** Returns a port that was free a moment ago. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const port = PORTS.first + Math.floor(Math.random() * (PORTS.last - PORTS.first))
    if (await isFree(port)) return port
  }
  throw new Error(`no port to be had on ${HOST}`)
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, HOST)
  try {
    await once(server, 'listening')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return false
    throw error
  }
  server.close()
  await once(server, 'close')
  return true
}
