import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkUrl } from '../../../src/tools/guarded-fetch.ts'
import type { HttpToolDefinition, HttpToolOptions } from '../../../src/tools/http-request.ts'
import { httpTool, httpTools } from '../../../src/standalone/tools/http-tools.ts'
import { CutOff } from '../../../src/standalone/index.ts'
import { saveNoteWith, world } from './fixtures.ts'

let server: Server
let host = ''
let received: IncomingHttpHeaders = {}

const answers: Record<string, { status: number; location?: string; body?: string }> = {
  '/elsewhere': { status: 302, location: 'https://evil.example.com/' },
  '/around': { status: 302, location: '/echo/end' },
  '/loop': { status: 307, location: '/loop' },
  '/large': { status: 200, body: 'x'.repeat(5000) },
  '/wrong': { status: 503, body: 'later' },
  '/gateway': { status: 502, body: 'nobody answers' },
  '/slow-origin': { status: 524, body: 'it took too long' },
  '/origin-down': { status: 521, body: 'it refused' },
}

beforeAll(async () => {
  server = createServer((incoming, response) => {
    const { url = '', method, headers } = incoming
    received = headers
    const fixed = answers[url]
    if (fixed) {
      response.writeHead(fixed.status, fixed.location ? { location: fixed.location } : {}).end(fixed.body)
      return
    }
    if (url === '/slow') return
    if (url === '/reason') {
      response.writeHead(403, `no ${headers.authorization}`).end()
      return
    }
    if (url === '/broken') {
      incoming.socket.destroy()
      return
    }
    let body = ''
    incoming.on('data', (chunk) => (body += String(chunk)))
    incoming.on('end', () => response.setHeader('content-type', 'application/json').end(JSON.stringify({ url, method, headers, body })))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  host = `127.0.0.1:${(server.address() as AddressInfo).port}`
})

afterAll(() => {
  server.closeAllConnections()
  server.close()
})

async function call(
  definition: Partial<HttpToolDefinition>,
  { input = {}, key = null, ...options }: Partial<HttpToolOptions> & { input?: unknown; key?: string | null } = {},
) {
  const made = httpTool(
    { name: 'echo', description: 'Echoes', method: 'GET', url: `http://${host}/echo`, ...definition },
    { allowed_hosts: [host], ...options },
  )
  const sent = { toolCallId: 'c', messages: [], context: {}, idempotence_key: key }
  return (await made.execute?.(input, sent as never)) as {
    url: string
    method: string
    headers: Record<string, string>
    body: string
  }
}

describe('an HTTP tool', () => {
  test('fills its slots: encoded in the address, as they are in the body', async () => {
    const definition = {
      method: 'POST' as const,
      url: `http://${host}/echo/{{who}}?q={{ what }}`,
      headers: { 'x-who': '{{who}}' },
      body: { who: '{{who}}', what: 'about {{what}}', list: '{{list}}' },
    }
    const echoed = await call(definition, { input: { who: 'a/b?c', what: 'x&y=z', list: [1, { two: '{{who}}' }] } })
    expect(echoed).toMatchObject({ method: 'POST', url: '/echo/a%2Fb%3Fc?q=x%26y%3Dz', headers: { 'x-who': 'a/b?c' } })
    expect(JSON.parse(echoed.body)).toEqual({ who: 'a/b?c', what: 'about x&y=z', list: [1, { two: '{{who}}' }] })
  })

  test.each(['..', '.'])('does not leave its path by %s', async (who) => {
    await expect(call({ url: `http://${host}/echo/{{who}}/x` }, { input: { who } })).rejects.toThrow('cannot stand in an address')
  })

  test('has its secrets from outside, and sends the key where there is one', async () => {
    const secret = (name: string) => (name === 'TOKEN' ? 'Bearer t0ken' : undefined)
    const { headers } = await call({ secret_headers: { authorization: 'TOKEN' } }, { secret, key: 'run:1' })
    expect(received).toMatchObject({ authorization: 'Bearer t0ken', 'idempotency-key': 'run%3A1' })
    // A secret in the response is masked.
    expect(headers).toMatchObject({ authorization: '[secret]', 'idempotency-key': 'run%3A1' })
    expect((await call({}, {})).headers).not.toHaveProperty('idempotency-key')
    const reason = call({ url: `http://${host}/reason`, secret_headers: { authorization: 'TOKEN' } }, { secret })
    await expect(reason).rejects.toThrow(/^echo: 403 no \[secret\]$/)
    await expect(call({ secret_headers: { authorization: 'OTHER' } }, { secret })).rejects.toThrow('echo needs the secret OTHER')
    const broken = call({ secret_headers: { authorization: 'TOKEN' } }, { secret: () => 'to\nken' })
    await expect(broken).rejects.toThrow(/^echo needs the secret TOKEN, which holds what no header may hold$/)
  })

  test('follows redirects on its own host only, and not for ever', async () => {
    expect(await call({ url: `http://${host}/around` })).toMatchObject({ url: '/echo/end' })
    await expect(call({ url: `http://${host}/elsewhere` }, { allowed_hosts: [host, '*.example.com'] })).rejects.toThrow(
      'redirects to other hosts',
    )
    await expect(call({ url: `http://${host}/elsewhere` })).rejects.toThrow('evil.example.com is not among those allowed')
    await expect(call({ url: `http://${host}/loop` })).rejects.toThrow('redirects more than 3 times')
  })

  test('takes no more than allowed, and waits no longer', async () => {
    await expect(call({ url: `http://${host}/large`, max_response_bytes: 4000 })).rejects.toThrow('larger than 4000 bytes')
    await expect(call({ url: `http://${host}/slow`, timeout_ms: 30 })).rejects.toThrow('echo took longer than 30 ms')
  })

  test('says what went wrong, with the status that tells whether it may be tried again', async () => {
    await expect(call({ url: `http://${host}/wrong` })).rejects.toMatchObject({
      status: 503,
      message: 'echo: 503 Service Unavailable later',
    })
  })

  test.each([
    ['the server behind Cloudflare took too long', { url: '/slow-origin' }, /^it may have happened: .*524/],
    ['a gateway has no answer', { url: '/gateway' }, /^it may have happened: .*echo: 502 Bad Gateway nobody answers$/],
    ['the connection is lost', { url: '/broken' }, /^it may have happened: .*fetch failed$/],
    ['it takes too long', { url: '/slow', timeout_ms: 30 }, /^it may have happened: .*echo took longer than 30 ms$/],
  ])('that is to change something says that it may have where %s; one that only looks does not', async (_, { url, ...limit }, message) => {
    const definition = { ...limit, url: `http://${host}${url}`, method: 'POST' as const }
    const told = { name: 'CutOff', message: expect.stringMatching(message) as unknown }
    await expect(call(definition)).rejects.toMatchObject(told)
    await expect(call({ ...definition, repeatable: true })).rejects.not.toBeInstanceOf(CutOff)
    await expect(call({ ...definition, method: 'GET' })).rejects.not.toBeInstanceOf(CutOff)
  })

  test('that reached nobody has not happened', async () => {
    const down = call({ method: 'POST', url: `http://${host}/origin-down` })
    await expect(down).rejects.not.toBeInstanceOf(CutOff)
    await expect(down).rejects.toMatchObject({ status: 521 })
    const closed = createServer()
    await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve))
    const nobody = `127.0.0.1:${(closed.address() as AddressInfo).port}`
    await new Promise((resolve) => closed.close(resolve))
    const asked = call({ method: 'POST', url: `http://${nobody}/` }, { allowed_hosts: [nobody] })
    await expect(asked).rejects.not.toBeInstanceOf(CutOff)
  })

  test('that may have happened is undone by a plan, and tried again only under a key', async () => {
    let asked = 0
    const lost = async () => {
      asked += 1
      throw new Error('lost')
    }
    const definition = { name: 'notes.save', description: 'Saves', method: 'POST' as const, url: `http://${host}/{{title}}` }
    const tools = httpTools([definition], { allowed_hosts: [host], fetch: lost })
    const proposed = async (key: object) => {
      const step = { name: 'save', tool: 'notes.save', args: { title: '{{title}}' }, timeout_ms: 1000, retry: { max_attempts: 2 } }
      const plan = { ...key, budget: { max_cost_usd: 1, max_latency_ms: 10_000 }, steps: [step] }
      const { reflex } = world({
        tools,
        skills: [saveNoteWith({ plan, signature: { inputs: [{ name: 'title', type: 'string' }] }, effects: {} })],
      })
      return reflex
        .session()
        .propose({ skill_id: 'note.save', inputs: { title: 'x' }, why: 'a note' }, { from: 'caller', roles: ['writer'], text: 'a note' })
    }
    expect(await proposed({})).toMatchObject({
      status: 'partial_failure',
      reason: expect.stringContaining('it may have happened') as unknown,
    })
    expect(asked).toBe(1)
    await proposed({ idempotence_key: 'save:{{title}}' })
    expect(asked).toBe(3)
  })

  test('sends its secrets to their hosts only', async () => {
    received = {}
    const secrets = { secret: () => 'Bearer t0ken', secret_hosts: () => ['api.example.com'] }
    await expect(call({ secret_headers: { authorization: 'TOKEN' } }, secrets)).rejects.toThrow(
      `a secret must not be sent there: the host ${host}`,
    )
    expect(received).toEqual({})
    expect(await call({}, secrets)).toMatchObject({ method: 'GET' })
  })

  test('goes nowhere else', async () => {
    await expect(call({}, { allowed_hosts: [] })).rejects.toThrow('is not among those allowed: none')
    expect(() =>
      httpTools([{ name: 'x', description: '', method: 'GET', url: 'https://{{host}}/x' }], { allowed_hosts: ['*.example.com'] }),
    ).toThrow('the host in https://{{host}}/x must be fixed')
  })
})

test.each([
  ['https://api.example.com/x', ['api.example.com'], true],
  ['https://API.example.com/x', ['api.EXAMPLE.com'], true],
  ['https://a.b.example.com/x', ['*.example.com'], true],
  ['https://example.com/x', ['*.example.com'], false],
  ['https://evilexample.com/x', ['*.example.com'], false],
  ['https://api.example.com.evil.com/x', ['api.example.com', '*.example.com'], false],
  ['https://api.example.com:8443/x', ['api.example.com'], false],
  ['https://api.example.com:8443/x', ['*.example.com'], false],
  ['https://api.example.com:8443/x', ['api.example.com:8443'], true],
  ['http://api.example.com/x', ['api.example.com'], false],
  ['http://localhost:3000/x', ['localhost:3000'], true],
  ['https://api.example.com@evil.com/x', ['api.example.com'], false],
  ['https://me:secret@api.example.com/x', ['api.example.com'], false],
  ['file:///etc/passwd', [''], false],
  ['no address', ['no address'], false],
  ['https://x/', ['*.'], false],
])('%s with %j is allowed: %s', (address, allowed_hosts, ok) => {
  expect(checkUrl(address, allowed_hosts).ok).toBe(ok)
})
