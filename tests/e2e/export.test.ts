import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startServer, type LocalServer } from '../../cli/lib/local-server.ts'
import type { Span, TraceReport } from '../../src/contract/reports/trace.ts'
import { newSpanId, newTraceId } from '../../src/core/event.ts'
import { parseRequest, spansIn, attributesOf, type OtlpSpan } from '../support/otlp/schema.ts'
import { ADMIN_KEY, ask, eventually, temporaryState } from './api.ts'
import { reflex } from './command-line.ts'

const state = await temporaryState()
const SCOPE = 'ssh/exported'
const SECRET = 'collector-secret'
const received: { spans: OtlpSpan[]; resource: Record<string, unknown>; authorization: string | undefined }[] = []
const blocks: { traceparent: string | undefined }[] = []
let is_away = false

/** The collector, and the webhook that the SSH guard calls for each block. */
const outside = createServer((request, response) => {
  void text(request).then((body) => {
    if (request.url === '/block') blocks.push({ traceparent: request.headers['traceparent'] as string | undefined })
    else if (is_away) return response.writeHead(503, { 'Retry-After': '1' }).end()
    else {
      const [resource] = parseRequest(body).resourceSpans.map((one) => attributesOf(one.resource))
      received.push({ spans: spansIn(body), resource: resource ?? {}, authorization: request.headers.authorization })
    }
    return response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  })
}).listen(0, '127.0.0.1')
await once(outside, 'listening')
const url = `http://127.0.0.1:${(outside.address() as AddressInfo).port}`

let server: LocalServer
const start = () =>
  startServer({
    persist_to: state.directory,
    migrated: true,
    vars: {
      REFLEX_ADMIN_KEY: ADMIN_KEY,
      REFLEX_MODEL: 'offline',
      BLOCK_WEBHOOK_URL: `${url}/block`,
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer%20${SECRET}`,
      OTEL_SERVICE_NAME: 'guard',
    },
  })

beforeAll(async () => {
  server = await start()
})
afterAll(async () => {
  await server?.stop()
  outside.close()
  await state.remove()
})

/** Lines of an attack that the guard answers with a block, from a caller with a span of its own. */
async function attack(address: string): Promise<{ trace_id: string; span_id: string }> {
  const [trace_id, span_id] = [newTraceId(), newSpanId()]
  const line = `Dec 10 06:55:46 web sshd[24200]: Failed password for root from ${address} port 38926 ssh2`
  const events = Array.from({ length: 12 }, () => ({ id: randomUUID(), type: 'log.line', scope: SCOPE, host: 'web', line }))
  const response = await fetch(`${server.url}/v1/events`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${ADMIN_KEY}`,
      'content-type': 'application/json',
      traceparent: `00-${trace_id}-${span_id}-01`,
    },
    body: JSON.stringify(events),
  })
  expect(response.status).toBe(202)
  return { trace_id, span_id }
}

const flat = (span: Span): Span[] => [span, ...span.children.flatMap(flat)]
const ended = (trace_id: string) =>
  eventually(async () => {
    const trace = await ask<TraceReport>(server.url, `/v1/traces/${trace_id}`).catch(() => null)
    return trace?.status === 'ok' && flat(trace.root).some(({ kind }) => kind === 'effect') ? trace : null
  }, 'the attack is answered')
const sent = (trace_id: string): OtlpSpan[] => received.flatMap(({ spans }) => spans).filter(({ traceId }) => traceId === trace_id)
const byId = (one: { id: string }, other: { id: string }): number => one.id.localeCompare(other.id)

test('events of a traced caller are one tree in a collector, in the API and in the command line', async () => {
  const from = await attack('198.51.100.7')
  const trace = await ended(from.trace_id)
  const shown = flat(trace.root).filter(({ kind }) => kind !== 'caller')
  await eventually(async () => sent(from.trace_id).length >= shown.length, 'the spans are exported')
  const spans = sent(from.trace_id)
  expect(spans.map(({ spanId, parentSpanId, name }) => ({ id: spanId, parent: parentSpanId, name })).toSorted(byId)).toEqual(
    shown.map(({ span_id, parent_id, name }) => ({ id: span_id, parent: parent_id, name })).toSorted(byId),
  )

  // From the span that got the webhook's request up to the caller's.
  const [, , request_span] = blocks[0]?.traceparent?.split('-') ?? []
  const parents = new Map(spans.map(({ spanId, parentSpanId }) => [spanId, parentSpanId]))
  const path: string[] = []
  for (let id = request_span; id !== undefined; id = parents.get(id)) path.push(id)
  expect(path.at(-1)).toBe(from.span_id)
  const names = path.map((id) => spans.find(({ spanId }) => spanId === id)?.name)
  expect(names[0]).toMatch(/^execute_tool /)
  expect(names).toContain(`process ${SCOPE}`)

  expect(received.at(-1)).toMatchObject({
    authorization: `Bearer ${SECRET}`,
    resource: { 'service.name': 'guard', 'cloud.provider': 'cloudflare' },
  })
  const env = { REFLEX_URL: server.url, REFLEX_KEY: ADMIN_KEY, XDG_CONFIG_HOME: state.directory }
  const { stdout, code } = await reflex(['trace', 'show', from.trace_id, '--json'], { env })
  expect(code).toBe(0)
  expect(flat((JSON.parse(stdout) as TraceReport).root).map(({ span_id }) => span_id)).toEqual(
    flat(trace.root).map(({ span_id }) => span_id),
  )
  expect(server.log()).not.toContain(SECRET)
})

test('a server that is killed while the collector is away sends every span after it has started again', async () => {
  is_away = true
  const from = await attack('198.51.100.8')
  const trace = await ended(from.trace_id)
  await server.kill9()
  is_away = false
  server = await start()
  const shown = flat(trace.root).filter(({ kind }) => kind !== 'caller')
  await eventually(async () => sent(from.trace_id).length >= shown.length, 'the spans are exported')
  expect(
    sent(from.trace_id)
      .map(({ spanId }) => spanId)
      .toSorted(),
  ).toEqual(shown.map(({ span_id }) => span_id).toSorted())
})
