import { ended, until, type ReflexClient } from '../clients.ts'
import type { Figure, Side } from '../figure.ts'
import { batches, chatMessage, concurrently, loginLines, rate } from '../load.ts'
import { replyByReflex, SAYS_NO } from './socket.ts'

const EVENTS = 5000
const names = (name: string): string[] => Array.from({ length: 5 }, (_, index) => `${name}-${index + 1}`)

type Request = { scope: string; body: string }
type Load = { scopes: string[]; count: number; requests: () => Request[]; lanes?: number }

/** From the first request until every event has its outcome. */
function toOutcomes(reflex: ReflexClient, { scopes, count, requests, lanes }: Load): Side {
  return {
    async measure() {
      const all = requests()
      const before = new Map(await Promise.all(scopes.map(async (scope) => [scope, ended(await reflex.state(scope))] as const)))
      const events = await rate(count, async () => {
        await concurrently(all, ({ scope, body }) => reflex.accept(scope, body), lanes)
        for (const [scope, start] of before) {
          await until(async () => ended(await reflex.state(scope)) >= start + count / scopes.length, { what: `all events in ${scope}` })
        }
      })
      await reflex.quiet(...scopes)
      return events
    },
  }
}

const inBatches = (scopes: string[], size: number, eventsOf: (count: number) => object[]) => (): Request[] =>
  batches(eventsOf(EVENTS), size).map((batch, index) => ({ scope: scopes[index % scopes.length] ?? '', body: JSON.stringify(batch) }))

const logins = (scopes: string[]) =>
  inBatches(scopes, 100, (count) => loginLines(count, (index) => scopes[Math.floor(index / 100) % scopes.length] ?? ''))

export const directPath: Figure = {
  name: 'direct',
  what: 'POST /v1/scopes/:scope/events to outcomes, against an insert into D1',
  unit: 'events/s',
  target: { at_least: 0.3 },
  async ours(reflex) {
    const scopes = names('ssh/direct')
    return toOutcomes(reflex, { scopes, count: EVENTS, requests: logins(scopes) })
  },
  async bare({ bare }) {
    const requests = logins(names('ssh/direct'))
    return {
      async measure() {
        const all = requests()
        return rate(EVENTS, () => concurrently(all, ({ body }) => bare.insert(body)))
      },
    }
  },
}

export const reflexDirect: Figure = {
  name: 'reflex-direct',
  what: 'the same with 20 events a request, each answered by a reflex',
  unit: 'events/s',
  target: { at_least: 3000 },
  async ours(reflex) {
    const scopes = names('bench-replies')
    await replyByReflex(reflex, ...scopes)
    const requests = inBatches(scopes, 20, (count) => Array.from({ length: count }, () => chatMessage()))
    return toOutcomes(reflex, { scopes, count: EVENTS, requests })
  },
}

const SINGLES = 1000
const SENDERS = 16
const singles = (scopes: string[]): Request[] =>
  Array.from({ length: SINGLES }, (_, index) => ({ scope: scopes[index % scopes.length] ?? '', body: JSON.stringify(chatMessage()) }))

export const singleEvents: Figure = {
  name: 'singles',
  what: 'one event a request, 16 senders, a turn that says no, against the same work by hand in an object',
  unit: 'events/s',
  target: { at_least: 0.9 },
  async ours(reflex) {
    const scopes = names('bench-singles')
    for (const scope of scopes) await reflex.configure(scope, SAYS_NO)
    return toOutcomes(reflex, { scopes, count: SINGLES, requests: () => singles(scopes), lanes: SENDERS })
  },
  async bare({ bare }) {
    const scopes = names('singles')
    return {
      async measure() {
        const all = singles(scopes)
        const before = new Map(await Promise.all(scopes.map(async (scope) => [scope, await bare.worked(scope)] as const)))
        return rate(SINGLES, async () => {
          await concurrently(all, ({ scope, body }) => bare.work(scope, body), SENDERS)
          for (const [scope, start] of before) {
            await until(async () => (await bare.worked(scope)) >= start + SINGLES / scopes.length, { what: `all events in ${scope}` })
          }
        })
      },
    }
  },
}
