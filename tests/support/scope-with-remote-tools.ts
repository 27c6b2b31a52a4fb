import { call, scopePath } from './http.ts'
import { freshId } from './reflexes.ts'
import { freshScope, note, sendAndSettle, stubOf } from './scopes.ts'
import { behaviours } from './test-agents.ts'

/** The host that the test deployment's secret REFLEX_TOOL_TICKETS is for. */
export const HOST = 'tickets.example.com'

/** Scopes of this kind export their spans, to a collector at the same host. */
export const EXPORTED = 'test/exported'

/** Scopes of this kind ask a decision model at the same host; others ask the offline one. */
export const DECIDED = 'decided'
/** Scopes whose model has a price, and which share a budget. */
export const PRICED = 'priced'

/** A tool of a scope's settings. */
export const open = {
  name: 'http.tickets.open',
  description: 'Opens a ticket',
  method: 'POST',
  url: `https://${HOST}/tickets`,
  secret_headers: { authorization: 'REFLEX_TOOL_TICKETS' },
  body: { title: '{{title}}' },
}
export const server = { name: 'sky', url: `https://${HOST}/mcp` }

export const configure = (scope: string, json: Record<string, unknown>) => call(scopePath(scope), { method: 'PATCH', json })

export async function scopeWith(settings: Record<string, unknown>, kind?: string): Promise<string> {
  const scope = freshScope(kind)
  const { status, text } = await configure(scope, { allowed_hosts: [HOST], ...settings })
  if (status !== 200) throw new Error(text)
  return scope
}

/** The result of a turn's tool call, or the reason for its failure. */
export async function called(scope: string, tool: string, input: unknown): Promise<unknown> {
  behaviours.set(scope, async (_, deps) => {
    const settled = await deps.call(tool, input).then(
      (output) => ({ output }),
      (error: unknown) => ({ error: String(error) }),
    )
    return { settled, shown: Object.keys(deps.tools) }
  })
  const [record] = await sendAndSettle(stubOf(scope), note(scope, 'go'))
  const { result } = (record as { outcome: { result: { settled: unknown } } }).outcome
  return result.settled
}

export const skillOf = (tool: string, args: object, changes: Record<string, unknown> = {}) => ({
  id: freshId('outside'),
  version: '1.0.0',
  owner: 'ops',
  signature: { inputs: [{ name: 'title', type: 'string', required: true }] },
  plan: {
    idempotence_key: 'open:{{title}}',
    budget: { max_cost_usd: 1, max_latency_ms: 10_000 },
    steps: [{ tool, args, timeout_ms: 5000 }],
  },
  activation: { keywords_any: ['ticket'], score_weights: { keyword_hit: 1 }, tau: 1 },
  policy: { allow_roles: ['publisher'] },
  ...changes,
})

export async function propose(scope: string, manifest: ReturnType<typeof skillOf>, headers: Record<string, string> = {}) {
  const registered = await call('/v1/skills', { json: manifest })
  if (registered.status !== 201) throw new Error(registered.text)
  await call(`/v1/skills/${manifest.id}/state`, { json: { state: 'active' } })
  const json = { skill_id: manifest.id, inputs: { title: 'it burns' }, why: 'open a ticket' }
  return (await call(scopePath(scope, '/skills/propose'), { json, headers })).body
}
