import { once } from 'node:events'
import { createServer } from 'node:net'

/** Returns a port that was free a moment ago. */
export async function freePort(host = '127.0.0.1'): Promise<number> {
  const server = createServer().listen(0, host)
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (typeof address !== 'object' || address === null) throw new Error(`no port to be had on ${host}`)
  return address.port
}
