import { setTimeout as wait } from 'node:timers/promises'
import type { Event } from '../../src/core/event.ts'
import type { Page } from '../../src/contract/scope-api.ts'
import type { ScopeState } from '../../src/contract/scope.ts'
import type { Api } from '../lib/api.ts'
import { CliError } from '../lib/cli-error.ts'

export const FAILING_SCOPE = 'demo/failing'
/**
 * Divides by the number of requests, which is 0: each evaluation fails, as a user's mistake would.
 */
export const FAILING_CONDITION = '100 * by_type["ws.message"] / by_type["http.request"] > 50'
/** One less than the default, which saves the demo a second. */
export const FAILING_ATTEMPTS = 2

export type DeadLetter = {
  id: string
  scope: string | null
  event_id: string | null
  type: string | null
  error: string
  attempts: number
  event?: Event
  dead_lettered_at: string
}

const POLL_MS = 100
/** The scope's outbox replicates to D1 within about a second. */
const MOST_MS = 15_000

/**
 * Creates a scope of the built-in agent whose condition cannot be evaluated, and sends it one
 * event.
 */
export async function sendToFail(api: Api, signal: AbortSignal): Promise<void> {
  const path = `/v1/scopes/${encodeURIComponent(FAILING_SCOPE)}`
  const settings = {
    instructions: 'Say whether messages arrive that nobody asked for.',
    when: FAILING_CONDITION,
    max_attempts: FAILING_ATTEMPTS,
  }
  await api.json<unknown>(path, { method: 'PATCH', body: settings, signal })
  const event = {
    id: 'fails-on-purpose',
    type: 'ws.message',
    scope: FAILING_SCOPE,
    source: 'demo',
    connection_id: 'demo',
    content: 'hello',
  }
  await api.json<unknown>('/v1/events', { method: 'POST', body: event, signal })
}

/** Returns the failing scope's dead letters once D1 has them. */
export async function deadLetters(api: Api, signal: AbortSignal): Promise<DeadLetter[]> {
  const until = performance.now() + MOST_MS
  for (;;) {
    const { items } = await api.json<Page<DeadLetter>>(`/v1/dlq?scope=${encodeURIComponent(FAILING_SCOPE)}`, { signal })
    if (items.length > 0) return items
    if (performance.now() > until) {
      const { inbox } = await api.json<ScopeState>(`/v1/scopes/${encodeURIComponent(FAILING_SCOPE)}`, { signal })
      throw new CliError(
        `The event that fails on purpose is not among the dead letters after ${MOST_MS / 1000} s: ${JSON.stringify(inbox)}`,
      )
    }
    await wait(POLL_MS, undefined, { signal })
  }
}
