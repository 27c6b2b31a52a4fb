import { ended, type ReflexClient } from '../clients.ts'
import type { Figure, Side } from '../figure.ts'
import { batches, chatMessage, concurrently, loginLines, rate, rateToOutcomes } from '../load.ts'
import { replyByReflex, SAYS_NO } from './socket.ts'

const EVENTS = 5000
const names = (name: string): string[] => Array.from({ length: 5 }, (_, index) => `${name}-${index + 1}`)

type Request = { scope: string; body: string }
type Load = { scopes: string[]; count: number; requests: () => Request[]; lanes?: number }

function toOutcomes(reflex: ReflexClient, { scopes, count, requests, lanes }: Load): Side {
  return {
    async measure() {
      const all = requests()
      const counted = async (scope: string) => ended(await reflex.state(scope))
      const send = () => concurrently(all, ({ scope, body }) => reflex.accept(scope, body), lanes)
      const events = await rateToOutcomes(count, { scopes, counted, send })
      await reflex.quiet(...scopes)
      return events
    },
  }
}

const inBatches = (scopes: string[], size: number, eventsOf: () => object[]) => (): Request[] =>
  batches(eventsOf(), size).map((batch, index) => ({ scope: scopes[index % scopes.length] ?? '', body: JSON.stringify(batch) }))

const logins = (scopes: string[], count: number) =>
  inBatches(scopes, 100, () => loginLines(count, (index) => scopes[Math.floor(index / 100) % scopes.length] ?? ''))

export const directPath: Figure = {
  name: 'direct',
  what: 'POST /v1/scopes/:scope/events to outcomes, against an insert into D1',
  unit: 'events/s',
  target: { at_least: 0.3 },
  worst: 0.1,
  async ours(reflex, bench) {
    const scopes = names('ssh/direct')
    const count = bench.count(EVENTS)
    return toOutcomes(reflex, { scopes, count, requests: logins(scopes, count) })
  },
  async bare({ bare, ...bench }) {
    const count = bench.count(EVENTS)
    const requests = logins(names('ssh/direct'), count)
    return {
      async measure() {
        const all = requests()
        return rate(count, () => concurrently(all, ({ body }) => bare.insert(body)))
      },
    }
  },
}

export const reflexDirect: Figure = {
  name: 'reflex-direct',
  what: 'POST /v1/scopes/:scope/events with 20 events a request, each answered by a reflex',
  unit: 'events/s',
  target: { at_least: 3000 },
  async ours(reflex, bench) {
    const scopes = names('bench-replies')
    const count = bench.count(EVENTS)
    await replyByReflex(reflex, ...scopes)
    const requests = inBatches(scopes, 20, () => Array.from({ length: count }, () => chatMessage()))
    return toOutcomes(reflex, { scopes, count, requests })
  },
}

const SINGLES = 1000
const SENDERS = 16
const singles = (scopes: string[], count: number): Request[] =>
  Array.from({ length: count }, (_, index) => ({ scope: scopes[index % scopes.length] ?? '', body: JSON.stringify(chatMessage()) }))

export const singleEvents: Figure = {
  name: 'singles',
  what: 'one event a request, 16 senders, a turn that says no, against the same work by hand in an object',
  unit: 'events/s',
  target: { at_least: 0.9 },
  worst: 0.15,
  async ours(reflex, bench) {
    const scopes = names('bench-singles')
    const count = bench.count(SINGLES)
    for (const scope of scopes) await reflex.configure(scope, SAYS_NO)
    return toOutcomes(reflex, { scopes, count, requests: () => singles(scopes, count), lanes: SENDERS })
  },
  async bare({ bare, ...bench }) {
    const scopes = names('singles')
    const count = bench.count(SINGLES)
    return {
      async measure() {
        const all = singles(scopes, count)
        const send = () => concurrently(all, ({ scope, body }) => bare.work(scope, body), SENDERS)
        return rateToOutcomes(count, { scopes, counted: bare.worked, send })
      },
    }
  },
}
