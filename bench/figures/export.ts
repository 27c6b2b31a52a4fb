import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Figure } from '../figure.ts'
import { toOutcomes } from './queue.ts'

/** Enough that most spans are sent while events still arrive: they are gathered for 0.8 s. */
const EVENTS = 30_000
const CLIENTS = 16

/** Two servers of Reflex itself, of which one has a collector that answers at once. */
export const exported: Figure = {
  name: 'export',
  what: 'POST /v1/events to outcomes with every span exported, against no export',
  unit: 'events/s',
  target: { at_least: 0.9 },
  worst: 0.3,
  async ours(_reflex, { another, count }) {
    let requests = 0
    const collector = createServer((incoming, outgoing) => {
      requests += 1
      incoming.resume().on('end', () => outgoing.setHeader('content-type', 'application/json').end('{}'))
    }).listen(0, '127.0.0.1')
    await once(collector, 'listening')
    const url = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`
    const side = toOutcomes(await another({ OTEL_EXPORTER_OTLP_ENDPOINT: url }), count(EVENTS), CLIENTS)
    return {
      async measure() {
        const events = await side.measure()
        if (requests === 0) throw new Error('the collector got nothing')
        return events
      },
      close: async () => void collector.close(),
    }
  },
  bare: async ({ another, count }) => toOutcomes(await another({}), count(EVENTS), CLIENTS),
}
