import { setTimeout as wait } from 'node:timers/promises'
import type { ScopeState } from '../../src/contract/scope.ts'
import type { Api } from '../lib/api.ts'
import { CliError } from '../lib/cli-error.ts'
import { count } from '../lib/text.ts'

const POLL_MS = 100

type Waiting = { expected: ReadonlyMap<string, number>; timeout_s: number; signal: AbortSignal }

/**
 * Polls the scopes until every event has exactly one outcome (G1). Throws if nothing changes for
 * `timeout_s`.
 */
export async function waitSettled(api: Api, { expected, timeout_s, signal }: Waiting): Promise<ScopeState[]> {
  const settled = new Map<string, ScopeState>()
  let [moved_at, last] = [performance.now(), '']
  for (;;) {
    const open = Array.from(expected.keys()).filter((scope) => !settled.has(scope))
    const states = await Promise.all(open.map((scope) => api.json<ScopeState>(`/v1/scopes/${encodeURIComponent(scope)}`, { signal })))
    for (const state of states) if (isSettled(state, expected.get(state.scope) ?? 0)) settled.set(state.scope, state)
    if (settled.size === expected.size) return Array.from(expected.keys()).flatMap((scope) => settled.get(scope) ?? [])
    const now = states.map(({ last_seq }) => last_seq).join(' ')
    if (now !== last) [moved_at, last] = [performance.now(), now]
    if (performance.now() - moved_at > timeout_s * 1000) throw stalled(states, { expected, timeout_s })
    await wait(POLL_MS, undefined, { signal })
  }
}

export function isSettled({ counters, turn }: Pick<ScopeState, 'counters' | 'turn'>, expected: number): boolean {
  const { accepted, completed, ignored, dead_lettered, cancelled } = counters
  return accepted === expected && completed + ignored + dead_lettered + cancelled === accepted && turn === null
}

function stalled(states: readonly ScopeState[], { expected, timeout_s }: Pick<Waiting, 'expected' | 'timeout_s'>): CliError {
  const open = states.filter((state) => !isSettled(state, expected.get(state.scope) ?? 0))
  const lines = open.slice(0, 5).map(({ scope, counters, inbox, turn }) => {
    const { pending, processing, delayed } = inbox
    const of = `${count(counters.accepted)} of ${count(expected.get(scope) ?? 0)} lines accepted`
    return `  ${scope}: ${of}; ${pending} pending, ${processing} processing, ${delayed} waiting for a retry${turn ? `; a turn runs since ${turn.since}` : ''}`
  })
  const hint =
    'Events that wait for a retry may need minutes: --timeout S waits longer. --keep does not help here; npm run dev and /v1/scopes/SCOPE/log show why.'
  return new CliError(`Nothing has moved for ${timeout_s} s, and not every line has its outcome:\n${lines.join('\n')}`, hint)
}
