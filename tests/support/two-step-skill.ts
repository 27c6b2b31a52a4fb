import type { ProposalResult } from '../../src/skills/session/result.ts'
import { call, scopePath } from './http.ts'

/** A skill of two steps with the test agent's tools, for this scope alone. */
export const twoSteps = (id: string, changes: Record<string, unknown> = {}) => ({
  id,
  version: '1.0.0',
  owner: 'ops',
  scope: 'project',
  description: 'Does it twice',
  compat: {},
  signature: {
    inputs: [{ name: 'what', type: 'string', required: true }],
    outputs: [{ name: 'done', type: 'string' }],
    blackboard_bindings: { inputs: {}, outputs: {} },
  },
  preconditions: { tools_available: ['act'], data_present: ['what'], invariants: [] },
  plan: {
    budget: { max_cost_usd: 1, max_latency_ms: 20_000 },
    steps: [
      { tool: 'act', args: { text: 'first {{what}}' }, timeout_ms: 5000 },
      { tool: 'act', args: { text: 'second {{what}}' }, timeout_ms: 5000 },
    ],
    compensation: [],
    result_map: { done: '{{what}}' },
  },
  effects: { writes: [], external: [] },
  activation: {
    required_slots: ['what'],
    goal_labels: ['twice'],
    keywords_any: ['twice'],
    score_weights: { goal_label: 3, keyword_hit: 2, recent_success: 1 },
    tau: 2,
    cooldown_s: 0,
    max_concurrency: 3,
  },
  llm_support: { parsers: [] },
  policy: { allow_roles: ['publisher', 'agent'] },
  ...changes,
})

/** Registers one with an id of its own, and gives that. */
export async function skill(changes: Record<string, unknown> = {}, state = 'active'): Promise<string> {
  const id = `twice.s${crypto.randomUUID().slice(0, 8)}`
  const registered = await call('/v1/skills', { json: twoSteps(id, changes) })
  if (registered.status !== 201) throw new Error(registered.text)
  if (state === 'active') await call(`/v1/skills/${id}/state`, { json: { state } })
  return id
}

export const propose = async (
  scope: string,
  skill_id: string,
  more: Record<string, unknown> = {},
  key?: string,
): Promise<ProposalResult> => {
  const json = { skill_id, inputs: { what: 'x' }, why: 'do it twice', ...more }
  const { status, body, text } = await call(scopePath(scope, '/skills/propose'), { json, ...(key === undefined ? {} : { key }) })
  if (status !== 200) throw new Error(text)
  return body as ProposalResult
}
