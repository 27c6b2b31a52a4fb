import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { inject } from 'vitest'
import type { z } from 'zod'
import { leaveDemo } from '../../../cli/demo/run.ts'
import { startServer, type LocalServer } from '../../../cli/lib/local-server.ts'
import type { learnRun } from '../../../src/features/learning/contract/runs.ts'
import { ADMIN_KEY, ask, eventually, OFFLINE, scopePath } from '../api.ts'

/**
 * The folder of the state that `npm run demo` leaves. The first file that asks runs the demo; the
 * others wait for it.
 */
export async function demoState(): Promise<string> {
  const [state, taken, ended] = ['state', 'taken', 'ended'].map((name) => join(inject('demo'), name)) as [string, string, string]
  const isFirst = await writeFile(taken, '', { flag: 'wx' }).then(
    () => true,
    () => false,
  )
  if (isFirst) await writeFile(ended, await runDemo(state).catch(String))
  const how = await eventually(() => readFile(ended, 'utf8').catch(() => null), 'the demo has ended')
  if (how !== 'ok') throw new Error(`The demo failed: ${how}`)
  return state
}

async function runDemo(persist_to: string): Promise<'ok'> {
  await cp(inject('migrated'), persist_to, { recursive: true })
  const server = await startServer({ persist_to, migrated: true, vars: OFFLINE })
  try {
    await leaveDemo(server, ADMIN_KEY)
    return 'ok'
  } finally {
    await server.stop()
  }
}

export const TRIAGE = 'demo/triage'

/** A decision model that is asked about one event, and is not sure of its answer. */
export async function seedDecision({ url }: LocalServer): Promise<void> {
  const question = {
    type: 'choice',
    instructions: 'What does the sender want?',
    criteria: { thanks: 'Thanks', hours: 'Hours', other: 'Anything' },
  }
  const decision_model = { name: 'triage', question, actions: { thanks: { action_type: 'ignore', reason: 'small talk' } }, threshold: 1 }
  const settings = { agent: 'prompted', instructions: 'Answer.', decision_model }
  await ask(url, scopePath(TRIAGE), { method: 'PATCH', body: settings })
  const body = { id: 'a-message', type: 'ws.message', source: 'ann', connection_id: 'ann', content: 'thanks a lot' }
  await ask(url, `${scopePath(TRIAGE)}/events?wait=outcome`, { body })
  const isCounted = async () => {
    const { series } = await ask<{ series: { label: string }[] }>(url, '/v1/stats?metric=reflex.runs&by=reflex&bucket=all')
    return series.some(({ label }) => label === 'decision:triage')
  }
  await eventually(isCounted, 'D1 has counted the decision')
}

type LearnRun = z.infer<typeof learnRun>

/** A run of learning that found the second version of a reflex. */
export function learnedRun({ trace_id, scope, reflex }: { trace_id: string; scope: string; reflex: string }): LearnRun {
  const place = { seq: 7, trace_id, event_id: 'line-1' }
  const evidence = {
    train: { n: 53, of: 300, exceptions: 0, from: place, to: place },
    held_out: { n: 41, covered: 40, agreed: 39, wilson_low: 0.93 },
    saves: { model_calls: 78, tokens: 15_000, cost_usd: 0.1, latency_ms: 1500 },
  }
  const candidate: LearnRun['candidates'][number] = {
    kind: 'reflex',
    id: reflex,
    version: '2',
    state: 'shadow',
    decision: 'tool block',
    evidence,
    examples: [place],
    code: '// code',
  }
  const at = '2026-11-22T20:00:00.000Z'
  const run = { run_id: 'a-run', scope, status: 'done', started_by: 'request', by: 'ann', started_at: at, ended_at: at } as const
  const episodes = { read: 300, used: 300, asked_again: 0, skipped: [], from: place, to: place }
  const found = {
    kinds: ['reflex' as const],
    window: 300,
    progress: { phase: 'done' as const, done: 1, of: 1 },
    found: 1,
    answer: 'One was learned.',
  }
  return { ...run, ...found, episodes, candidates: [candidate], rejected: [{ what: 'tool notify', reason: 'too few' }] }
}
