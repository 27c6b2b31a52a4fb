import type { LogEntry } from '../src/contract/log-entry.ts'
import type { EventRecord } from '../src/contract/event-record.ts'
import type { Page } from '../src/contract/scope-api.ts'
import type { RangeProgress, RangeReport } from '../src/features/replay/contract/replay.ts'
import type { ScopeState } from '../src/contract/scope.ts'
import type { TraceReport } from '../src/contract/reports/trace.ts'
import type { statistics } from '../src/features/statistics/contract/statistics.ts'
import type { z } from 'zod'

/** wrangler's proxy answers so if it reused a connection that workerd was closing. */
const LOST = 'Network connection lost'
const MOST_LOST = 3

/** Reads the whole body: only then does Node use the connection again. */
export async function send(url: string, init: RequestInit = {}, lost = 0): Promise<string> {
  const response = await fetch(url, init)
  const text = await response.text()
  if (response.ok) return text
  // Every request can be repeated: events carry ids.
  if (response.status === 500 && text.includes(LOST) && lost < MOST_LOST) return send(url, init, lost + 1)
  throw new Error(`${init.method ?? 'GET'} ${url} answered ${response.status}: ${text.slice(0, 1000)}`)
}

export type ReflexClient = ReturnType<typeof reflexClient>

export function reflexClient(url: string, key: string) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const at = (scope: string, rest = '') => `${url}/v1/scopes/${encodeURIComponent(scope)}${rest}`
  const post = (to: string, body: string) => send(to, { method: 'POST', headers, body })
  const state = async (scope: string): Promise<ScopeState> => JSON.parse(await send(at(scope), { headers }))
  return {
    url,
    headers,
    state,
    publish: (body: string) => post(`${url}/v1/events`, body),
    accept: (scope: string, body: string) => post(at(scope, '/events'), body),
    async outcome(scope: string, body: string): Promise<Pick<EventRecord, 'status' | 'error'>[]> {
      return JSON.parse(await post(at(scope, '/events?wait=outcome'), body)).events
    },
    register: (reflex: { id: string; code: string }) => post(`${url}/v1/reflexes`, JSON.stringify(reflex)),
    async activateSkill(manifest: { id: string; [field: string]: unknown }): Promise<void> {
      await post(`${url}/v1/skills?tools=any`, JSON.stringify(manifest))
      await post(`${url}/v1/skills/${manifest.id}/state`, JSON.stringify({ state: 'active', force: true, reason: 'a benchmark' }))
    },
    ledger: (route: 'mint' | 'transfers', body: unknown) => post(`${url}/v1/ledger/${route}`, JSON.stringify(body)),
    configure: (scope: string, patch: Record<string, unknown>) =>
      send(at(scope), { method: 'PATCH', headers, body: JSON.stringify(patch) }),
    async log(scope: string, after: number): Promise<Page<LogEntry>> {
      return JSON.parse(await send(at(scope, `/log?limit=1000&after=${after}`), { headers }))
    },
    async trace(trace_id: string): Promise<TraceReport> {
      return JSON.parse(await send(`${url}/v1/traces/${trace_id}`, { headers }))
    },
    async statistics(query: Record<string, string>): Promise<z.infer<typeof statistics>> {
      return JSON.parse(await send(`${url}/v1/stats?${new URLSearchParams(query).toString()}`, { headers }))
    },
    exported: (scope: string, trace_id: string) =>
      send(`${url}/v1/traces/${trace_id}/export?scope=${encodeURIComponent(scope)}`, { headers }),
    replay: (file: string) => post(`${url}/v1/replay`, file),
    async replayRange(scope: string, body: object): Promise<{ progress?: RangeProgress; report?: RangeReport }[]> {
      const lines = await send(at(scope, '/replay'), {
        method: 'POST',
        headers: { ...headers, accept: 'application/x-ndjson' },
        body: JSON.stringify(body),
      })
      return lines
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
    },
    /** With a ticket, as a browser connects: it cannot set a header on a WebSocket. */
    async socketUrl(scope: string): Promise<string> {
      const { ticket } = JSON.parse(await post(at(scope, '/tickets'), '{}'))
      return at(scope, `/ws?frames=units&ticket=${ticket}`).replace('http', 'ws')
    },
    /** As the dashboard stores it when somebody has signed in. */
    session: async () => ({ key, own: JSON.parse(await send(`${url}/v1/key`, { headers })) as unknown }),
    /** As D1 knows them, a moment behind the scopes. */
    async inboxes(): Promise<{ scopes: number; open: number }> {
      return JSON.parse(await send(`${url}/health/detailed`, { headers })).inboxes
    },
    /** Waits until D1 and a collector have everything, so that the machine is free. */
    async quiet(...scopes: string[]): Promise<void> {
      for (const scope of scopes) {
        await until(async () => isQuiet(await state(scope)), { pause_ms: 50, what: `the outbox of ${scope}` })
      }
    },
  }
}

const isQuiet = ({ outbox, spans }: ScopeState): boolean => outbox.waiting === 0 && (spans?.waiting ?? 0) === 0

export const ended = ({ counters }: ScopeState): number =>
  counters.completed + counters.ignored + counters.dead_lettered + counters.cancelled

export type BareClient = ReturnType<typeof bareClient>

export function bareClient(url: string) {
  const post = (path: string) => (body: string) => send(`${url}/${path}`, { method: 'POST', body })
  return {
    each: post('each'),
    grouped: post('grouped'),
    insert: post('d1'),
    /** An event, with all the work done by hand in one object. */
    work: (scope: string, body: string) => post(`work/${scope}`)(body),
    count: async (scope: string) => Number(await send(`${url}/count/${scope}`)),
    worked: async (scope: string) => Number(await send(`${url}/worked/${scope}`)),
    socketUrl: (scope: string) => `${url}/socket/${scope}`.replace('http', 'ws'),
    /** Passes on what is posted below it. */
    proxyTo: (host: string) => `${url}/proxy/${encodeURIComponent(host)}`,
  }
}

type Stopped = { name: string; ms: number; reason: string; fuel: number }
export type SandboxClient = ReturnType<typeof sandboxClient>

/**
 * Measured in workerd, whose clock has a resolution of 1 ms: shorter work is measured in blocks.
 */
export function sandboxClient(url: string) {
  const ask = async <Answer>(what: string): Promise<Answer> => JSON.parse(await send(`${url}/${what}`)) as Answer
  return {
    /** ms; valid on the first call only. */
    firstInIsolate: () => ask<number>('first-in-isolate'),
    warm: () => ask<number[]>('warm'),
    /** ms per run, in ten blocks of ten reflexes on their first run; valid on the first call. */
    firstOfReflex: () => ask<number[]>('first-of-reflex'),
    gate: () => ask<number[]>('gate'),
    bulletin: () => ask<number[]>('bulletin'),
    origins: () => ask<number[]>('origins'),
    toolProxy: () => ask<number[]>('tool-proxy'),
    toolLog: () => ask<number[]>('tool-log'),
    effectLog: () => ask<number[]>('effect-log'),
    bytes: () => ask<number>('memory'),
    fuel: () => ask<number>('fuel'),
    async hostile(): Promise<Stopped[]> {
      const all = await ask<Stopped[]>('hostile')
      return all.filter(({ reason }) => reason === 'limit').toSorted((one, other) => other.ms - one.ms)
    },
  }
}

/** Polls rarely: each poll is work for the server that is measured. */
export async function until(
  reached: () => Promise<boolean>,
  { pause_ms = 25, timeout_ms = 120_000, what = 'the end' } = {},
): Promise<void> {
  const end = performance.now() + timeout_ms
  while (!(await reached())) {
    if (performance.now() > end) throw new Error(`waited ${timeout_ms} ms for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, pause_ms))
  }
}
