import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { blockAddress, unblockAddress } from '../../../../examples/agents/ssh-guard/block-tools.ts'
import type { ToolCall } from '../../../../src/tools/define-tool.ts'
import type { Env } from '../../../../src/env.ts'
import { fakeDatabase, NOW, part } from '../agent-fixtures.ts'

const address = '203.0.113.7'
const input = { address, reason: '14 failed logins' }
const { db, rows } = fakeDatabase()

const call = (webhook?: string, overrides: Partial<ToolCall> = {}): ToolCall => ({
  env: part<Env>({ DB: db, BLOCK_WEBHOOK_URL: webhook }),
  fetch,
  scope: 'ssh/web-1',
  signal: new AbortController().signal,
  idempotence_key: `block:${address}`,
  now: () => NOW,
  parameters: {},
  ...overrides,
})

type Received = { method: string | undefined; headers: IncomingHttpHeaders; body: unknown }
const closing: (() => void)[] = []

/** A local webhook that responds with `status`, or not at all without one. */
async function webhook(status?: number, headers: Record<string, string> = {}) {
  const received: Received[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (piece: Buffer) => (text += piece.toString()))
    request.on('end', () => {
      received.push({ method: request.method, headers: request.headers, body: JSON.parse(text) })
      if (status !== undefined) response.writeHead(status, headers).end('thanks')
    })
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  closing.push(() => server.close().closeAllConnections())
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens on TCP
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/secret-path`, received }
}

afterEach(() => {
  for (const close of closing.splice(0)) close()
  rows.clear()
})

describe('blocking an address', () => {
  it('writes a row, once', async () => {
    expect(await blockAddress.execute(input, call())).toEqual({ blocked: true, address, reported: false })
    await blockAddress.execute({ ...input, reason: 'again' }, call())
    expect(Array.from(rows.values())).toEqual([{ scope: 'ssh/web-1', address, reason: '14 failed logins', blocked_at: NOW }])
  })

  it('tells the webhook, with a key that is the same for the same block', async () => {
    const { url, received } = await webhook(204)
    expect(await blockAddress.execute(input, call(url))).toEqual({ blocked: true, address, reported: true })
    await blockAddress.execute(input, call(url))
    expect(received).toHaveLength(2)
    expect(received[0]).toMatchObject({
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': `ssh/web-1 block:${address} ${NOW}` },
      body: { scope: 'ssh/web-1', ...input },
    })
    expect(received[1]?.headers['idempotency-key']).toBe(received[0]?.headers['idempotency-key'])
  })

  it('has one key for an address', () => {
    expect(blockAddress.idempotence_key?.(input, 'ssh/web-1')).toBe(`block:${address}`)
  })

  it.each([400, 404, 500, 503])('fails where the webhook answers %i', async (status) => {
    const { url } = await webhook(status)
    await expect(blockAddress.execute(input, call(url))).rejects.toThrow(
      new RegExp(`^the webhook at 127\\.0\\.0\\.1:\\d+ answered ${status}$`),
    )
  })

  it('does not follow a redirect', async () => {
    const elsewhere = await webhook(200)
    const { url } = await webhook(307, { location: elsewhere.url })
    await expect(blockAddress.execute(input, call(url))).rejects.toThrow('answered 307')
    expect(elsewhere.received).toEqual([])
  })

  it('gives up with its signal', async () => {
    const { url, received } = await webhook()
    const stop = new AbortController()
    const blocking = blockAddress.execute(input, call(url, { signal: stop.signal }))
    await expect.poll(() => received.length).toBe(1)
    stop.abort(new Error('took longer than 10000 ms'))
    await expect(blocking).rejects.toThrow('took longer than 10000 ms')
  })

  it.each([
    ['http://example.com/hook', 'must be https'],
    ['ftp://localhost/hook', 'must be https'],
    ['http://localhost.example.com/hook', 'must be https'],
    ['http://127.0.0.1.example.com/hook', 'must be https'],
    ['not a url', 'is not a URL'],
  ])('refuses the webhook %s before anything is done', async (url, message) => {
    await expect(blockAddress.execute(input, call(url))).rejects.toThrow(message)
    expect(rows.size).toBe(0)
  })

  it.each(['http://localhost:1/secret', 'http://[::1]:1/secret', 'https://example.com/secret'])(
    'allows the webhook %s, and keeps its path to itself',
    async (url) => {
      const asked: string[] = []
      const refusing: typeof fetch = async (target) => {
        asked.push(target instanceof URL ? target.href : 'no URL')
        return new Response(null, { status: 500 })
      }
      const error: unknown = await Promise.resolve(blockAddress.execute(input, call(url, { fetch: refusing }))).catch(
        (thrown: unknown) => thrown,
      )
      expect(asked).toEqual([url])
      expect(String(error)).toContain('answered 500')
      expect(String(error)).not.toContain('secret')
    },
  )

  it.each(['10.0.0.1', '127.0.0.1', '::1', '::ffff:192.168.0.1'])('refuses the private address %s unless it is allowed', async (own) => {
    const own_input = { ...input, address: own }
    await expect(blockAddress.execute(own_input, call())).rejects.toThrow('private')
    await expect(blockAddress.execute(own_input, call(undefined, { parameters: { allow_private: 'yes' } }))).rejects.toThrow('private')
    expect(rows.size).toBe(0)
    expect(await blockAddress.execute(own_input, call(undefined, { parameters: { allow_private: true } }))).toMatchObject({ blocked: true })
  })

  it.each([
    { address: 'example.com', reason: 'x' },
    { address: '1.2.3', reason: 'x' },
    { address: '010.0.0.1', reason: 'x' },
    { address: '1.2.3.4/8', reason: 'x' },
    { address, reason: ' ' },
    { address, reason: 'x'.repeat(501) },
    { reason: 'x' },
  ])('does not take %j', (bad) => {
    expect(blockAddress.input.safeParse(bad).success).toBe(false)
  })
})

describe('unblocking an address', () => {
  it('deletes the row, and reports a missing one', async () => {
    await blockAddress.execute(input, call())
    expect(await unblockAddress.execute({ address }, call())).toEqual({ unblocked: true, address, reported: false })
    expect(rows.size).toBe(0)
    expect(await unblockAddress.execute({ address }, call())).toMatchObject({ unblocked: false, reason: 'it was not blocked' })
  })

  it('tells the webhook first, so that a call that failed finds the row again', async () => {
    const failing = await webhook(503)
    await blockAddress.execute(input, call())
    await expect(unblockAddress.execute({ address }, call(failing.url))).rejects.toThrow('answered 503')
    expect(rows.size).toBe(1)
    const { url, received } = await webhook(200)
    expect(await unblockAddress.execute({ address }, call(url))).toMatchObject({ unblocked: true, reported: true })
    expect(received[0]?.body).toEqual({ scope: 'ssh/web-1', address, unblock: true })
    expect(received[0]?.headers['idempotency-key']).toBe(failing.received[0]?.headers['idempotency-key'])
  })

  it('makes the next block a new one, also for the webhook', async () => {
    const { url, received } = await webhook(200)
    await blockAddress.execute(input, call(url))
    await unblockAddress.execute({ address }, call(url))
    await blockAddress.execute(input, call(url, { now: () => NOW + 1 }))
    const keys = received.map(({ headers }) => headers['idempotency-key'])
    expect(keys).toEqual([
      `ssh/web-1 block:${address} ${NOW}`,
      `ssh/web-1 unblock:${address} ${NOW}`,
      `ssh/web-1 block:${address} ${NOW + 1}`,
    ])
  })
})
