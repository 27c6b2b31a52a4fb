import type { LogEntry } from '../src/contract/log-entry.ts'
import type { EventRecord } from '../src/contract/event-record.ts'
import type { Page, ScopeState } from '../src/contract/scope-api.ts'
import { send, until } from './http.ts'

export type ReflexClient = ReturnType<typeof reflexClient>

export function reflexClient(url: string, key: string) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const at = (scope: string, rest = '') => `${url}/v1/scopes/${encodeURIComponent(scope)}${rest}`
  const post = (to: string, body: string) => send(to, { method: 'POST', headers, body })
  const state = async (scope: string): Promise<ScopeState> => JSON.parse(await send(at(scope), { headers }))
  return {
    state,
    publish: (body: string) => post(`${url}/v1/events`, body),
    accept: (scope: string, body: string) => post(at(scope, '/events'), body),
    async outcome(scope: string, body: string): Promise<Pick<EventRecord, 'status' | 'error'>[]> {
      return JSON.parse(await post(at(scope, '/events?wait=outcome'), body)).events
    },
    register: (reflex: { id: string; code: string }) => post(`${url}/v1/reflexes`, JSON.stringify(reflex)),
    /** It need not be one that could run. */
    async activateSkill(manifest: { id: string; [field: string]: unknown }): Promise<void> {
      await post(`${url}/v1/skills?tools=any`, JSON.stringify(manifest))
      await post(`${url}/v1/skills/${manifest.id}/state`, JSON.stringify({ state: 'active' }))
    },
    configure: (scope: string, patch: Record<string, unknown>) =>
      send(at(scope), { method: 'PATCH', headers, body: JSON.stringify(patch) }),
    async log(scope: string, after: number): Promise<Page<LogEntry>> {
      return JSON.parse(await send(at(scope, `/log?limit=1000&after=${after}`), { headers }))
    },
    /** A browser's way in: a header can't be set on a WebSocket. */
    async socketUrl(scope: string): Promise<string> {
      const { ticket } = JSON.parse(await post(at(scope, '/tickets'), '{}'))
      return at(scope, `/ws?ticket=${ticket}`).replace('http', 'ws')
    },
    /** Until D1 knows all, so that what is measured next has the machine for itself. */
    async quiet(...scopes: string[]): Promise<void> {
      for (const scope of scopes) {
        await until(async () => (await state(scope)).outbox.waiting === 0, { pause_ms: 50, what: `the outbox of ${scope}` })
      }
    },
  }
}

export const ended = ({ counters }: ScopeState): number =>
  counters.completed + counters.ignored + counters.dead_lettered + counters.cancelled
