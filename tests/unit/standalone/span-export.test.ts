import { afterEach, expect, test } from 'vitest'
import { listen } from '../../../cli/lib/listen.ts'
import { newTraceId } from '../../../src/core/event.ts'
import { proposal, scripted, world } from './fixtures.ts'

type OtlpSpan = { traceId: string; spanId: string; parentSpanId?: string; name: string }
type Received = { resourceSpans: { resource: { attributes: { key: string; value: object }[] }; scopeSpans: { spans: OtlpSpan[] }[] }[] }

const stops: (() => void)[] = []
afterEach(() => stops.splice(0).forEach((stop) => stop()))

/** A collector that answers with this status. */
async function collector(status = 200) {
  const received: { url: string; key: unknown; body: Received }[] = []
  const server = await listen(({ url, headers, body }) => {
    received.push({ url, key: headers['x-key'], body: JSON.parse(body) as Received })
    return { status, body: {} }
  })
  stops.push(server.stop)
  const otlp = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://${server.host}`, OTEL_EXPORTER_OTLP_HEADERS: 'x-key=secret' }
  const spans = () => received.flatMap(({ body }) => body.resourceSpans.flatMap((one) => one.scopeSpans.flatMap((scope) => scope.spans)))
  return { otlp, received, spans }
}
const asked = { prompt: [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Save a note' }] }] }

test('a turn of a process is a trace of the collector, once', async () => {
  const { otlp, received, spans } = await collector()
  const { reflex, saved } = world({ otlp, newId: newTraceId })
  await reflex.wrapModel(scripted(proposal('milk'), 'Done.')).doGenerate(asked)
  expect(saved).toEqual(['milk'])
  await reflex.flush()
  const names = spans().map(({ name }) => name)
  expect(names).toEqual(expect.arrayContaining(['invoke_agent wrapped', 'chat mock-model-id', 'execute_tool notes.save']))
  expect(new Set(spans().map(({ traceId }) => traceId)).size).toBe(1)
  const ids = new Set(spans().map(({ spanId }) => spanId))
  expect(spans().filter(({ parentSpanId }) => parentSpanId !== undefined && !ids.has(parentSpanId))).toEqual([])
  expect(received[0]).toMatchObject({ url: '/v1/traces', key: 'secret' })
  const about = JSON.stringify(received[0]?.body.resourceSpans[0]?.resource)
  expect(about).toContain('"service.name"')
  expect(about).not.toContain('cloudflare')
  const before = received.length
  await reflex.flush()
  expect(received).toHaveLength(before)
})

test('a collector that is away stops no turn, and no flush', async () => {
  const { otlp, received } = await collector(503)
  const { reflex } = world({ otlp, newId: newTraceId })
  await reflex.wrapModel(scripted('One.')).doGenerate(asked)
  await reflex.flush()
  expect(received).toHaveLength(1)
})
