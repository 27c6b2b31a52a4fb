import type { SettingsPatch } from '../../src/contract/settings/settings.ts'
import { call } from '../support/http.ts'
import { useTool } from '../support/mcp.ts'
import { mcpAnswer, outside } from '../support/mock-fetch.ts'
import { overlapping } from '../support/overlap.ts'
import { createVersion, replying } from '../support/reflexes.ts'
import { HOST, server } from '../support/scope-with-remote-tools.ts'
import { evict, hurry, logOf, note, stubOf, until } from '../support/scopes.ts'
import { propose, skill } from '../support/two-step-skill.ts'

/** Makes one trace and gives its id, with the trigger of its name in `behaviours.ts`. */
type Scenario = { run: (scope: string) => Promise<string> }

export async function accept(scope: string, text = 'hi', fields: Record<string, unknown> = {}): Promise<string> {
  const event = note(scope, text, fields)
  await stubOf(scope).accept([event], 'http')
  await stubOf(scope).outcomes([event.id], 10_000)
  return event.meta.trace_id
}

const REFUSED = `function reflex(context) { return { action_type: 'call_tool', tool: 'nothing', args: {} } }`
const action = (fields: string): string => `function reflex(context) { return { ${fields} } }`
const configured = async (scope: string, patch: SettingsPatch) => void (await stubOf(scope).configure(patch, 'a test'))

/** The last of these events, on a scope whose chain is this reflex. */
const withReflex = (code: string, { reference = {}, fields = {}, texts = ['hi'] }: Chain = {}): Scenario => ({
  async run(scope) {
    const { id } = await createVersion({ code, ...fields })
    await configured(scope, { reflexes: [{ id, ...reference }] })
    let trace_id = ''
    for (const text of texts) trace_id = await accept(scope, text)
    return trace_id
  },
})
type Chain = { reference?: object; fields?: object; texts?: string[] }

const withTurn = (text = 'hi', fields: Record<string, unknown> = {}): Scenario => ({
  run: (scope) => accept(scope, text, fields),
})

const withSkill = (changes: Record<string, unknown>, proposal: Record<string, unknown> = {}): Scenario => ({
  async run(scope) {
    await propose(scope, await skill(changes), proposal)
    const decided = (await logOf(stubOf(scope))).find(({ kind }) => kind === 'skill-decided')
    return decided?.trace_id ?? ''
  },
})

const filtered = (text: string): Scenario => ({
  async run(scope) {
    await configured(scope, { retry: { max_attempts: 1 } })
    return accept(scope, text)
  },
})

const withOverlap = (overlap: SettingsPatch['overlap']): Scenario => ({
  run: async (scope) => (await overlapping(scope, overlap)).second,
})

/** A tick that came due, in one case three intervals ago: the missed ones become one. */
async function ticked(scope: string, missed_s = 0): Promise<string> {
  await stubOf(scope).setTimer('often', { every_s: 3600 }, 'a test')
  await hurry(stubOf(scope), missed_s * 1000)
  const accepted = (await logOf(stubOf(scope))).find((entry) => entry.kind === 'event-accepted')
  await stubOf(scope).outcomes(accepted?.event_ids ?? [], 10_000)
  return accepted?.trace_id ?? ''
}

async function pulled(scope: string): Promise<string> {
  await configured(scope, { consumer: 'pull' })
  const event = note(scope, 'for another process')
  await stubOf(scope).accept([event], 'http')
  return event.meta.trace_id
}

/** A proposal that waits for a person, and what becomes of it. */
const approval = (then: (approval_id: string, scope: string) => Promise<unknown>, within_s = 600): Scenario => ({
  async run(scope) {
    const policy = { allow_roles: ['publisher'], needs_approval_if: ['true'], approval_within_s: within_s }
    const { approval_id, trace_id } = await propose(scope, await skill({ policy }))
    await then(approval_id ?? '', scope)
    const ended = (kind: string) => ['approval-decided', 'skill-applied'].includes(kind)
    const most = then === approve ? 2 : 1
    await until(async () => (await logOf(stubOf(scope))).filter(({ kind }) => ended(kind)).length === most, 'it is decided')
    return trace_id
  },
})
const approve = (id: string) => call(`/v1/approvals/${id}/approve`, { json: {} })
const reject = (id: string) => call(`/v1/approvals/${id}/reject`, { json: { reason: 'not today' } })
async function expire(id: string, scope: string) {
  await until(async () => (await call(`/v1/approvals/${id}`)).body.status === 'expired', 'its time is over')
  await evict(stubOf(scope))
  await stubOf(scope).poke()
}

/** A turn whose model proposes a skill. The event holds the id of the skill. */
const proposing = (changes: Record<string, unknown>, settings: SettingsPatch = {}): Scenario => ({
  async run(scope) {
    if (Object.keys(settings).length > 0) await configured(scope, settings)
    return accept(scope, await skill(changes))
  },
})

/** The last of these proposals of one skill. */
const proposed = (changes: Record<string, unknown>, ...proposals: Record<string, unknown>[]): Scenario => ({
  async run(scope) {
    const skill_id = await skill(changes)
    let trace_id = ''
    for (const one of proposals) ({ trace_id } = await propose(scope, skill_id, one))
    return trace_id
  },
})

const planOf = (second: string, compensation: object[] = []) => ({
  budget: { max_cost_usd: 1, max_latency_ms: 20_000 },
  steps: ['first {{what}}', second].map((text) => ({ tool: 'act', args: { text }, timeout_ms: 5000 })),
  compensation,
  result_map: { done: '{{what}}' },
})

export const scenarios: Record<string, Scenario> = {
  'filter-passed': filtered('fine'),
  'filter-ignored': filtered('noise'),
  'filter-failed': filtered('bad filter'),
  'reflex-fired-reply': withReflex(replying('hello')),
  'reflex-fired-tool': withReflex(action(`action_type: 'call_tool', tool: 'act', args: { text: context.event.text }`)),
  'reflex-fired-scratch': withReflex(action(`action_type: 'set_scratch', key: 'seen', value: context.window['1m'].total`)),
  'reflex-fired-consuming': withReflex(action(`action_type: 'reply', content: 'done', consume: true`)),
  'reflex-ignored': withReflex(action(`action_type: 'ignore', reason: 'nothing to do'`)),
  'reflex-escalated': withReflex(action(`action_type: 'escalate', reason: 'look'`)),
  'reflex-emitted': withReflex(
    `function reflex({ event }) {
      if (event.text !== 'hi') return null
      return { action_type: 'emit_event', event: { type: 'test.note', text: 'from a reflex' } }
    }`,
  ),
  'reflex-passed': withReflex('function reflex(context) { return null }'),
  'reflex-failed': withReflex(`function reflex(context) { throw new Error('it broke') }`),
  'reflex-limit': withReflex('function reflex(context) { for (;;) {} }'),
  'reflex-invalid-action': withReflex(action(`action_type: 'dance'`)),
  'reflex-refused': withReflex(REFUSED),
  'reflex-cooldown': withReflex(replying('hello'), { reference: { cooldown_s: 600 }, texts: ['first', 'second'] }),
  'reflex-rate': withReflex(replying('hello'), { reference: { rate: 1 }, texts: ['first', 'second'] }),
  'reflex-reused': withReflex(action(`action_type: 'reply', content: 'once', idempotence_key: 'k'`), { texts: ['first', 'second'] }),
  'reflex-recent-actions': withReflex(action(`action_type: 'reply', content: String(context.recent_actions.length)`), {
    texts: ['first', 'second', 'third'],
  }),
  'reflex-suspended': withReflex(`function reflex(context) { throw new Error('it broke') }`, {
    texts: ['1', '2', '3', '4', '5', '6', '7'],
  }),
  'reflex-shadow': withReflex(replying('hello'), { fields: { state: 'shadow' } }),
  'reflex-missing': {
    async run(scope) {
      await configured(scope, { reflexes: [{ id: 'nobody-wrote-it' }] })
      return accept(scope)
    },
  },
  'turn-nothing': withTurn(),
  'turn-result': withTurn(),
  'turn-failed': withTurn(),
  'turn-tools': withTurn(),
  'turn-tool-failed': withTurn(),
  'turn-model': withTurn(),
  'turn-model-tools': withTurn(),
  'turn-model-failed': withTurn(),
  'turn-emitted': withTurn(),
  'turn-redacted': withTurn('log in', { password: 'correct-horse-battery' }),
  'turn-mcp': {
    async run(scope) {
      outside(HOST, mcpAnswer)
      await configured(scope, { allowed_hosts: [HOST], mcp_servers: [server] })
      return accept(scope)
    },
  },
  'turn-skill': proposing({}),
  'turn-skill-tools': proposing({}, { skill_protocol: 'tools' }),
  'turn-skill-refused': proposing({ policy: { allow_roles: ['nobody'] } }),
  'overlap-dropped': withOverlap('drop'),
  'overlap-queued': withOverlap('queue'),
  'overlap-interrupted': withOverlap('interrupt'),
  'overlap-debounced': withOverlap({ debounce: { quiet_ms: 20, max_ms: 100 } }),
  timer: { run: ticked },
  'timer-missed': { run: (scope) => ticked(scope, 3 * 3600) },
  pull: { run: pulled },
  'gate-allowed': withSkill({}),
  'gate-compat': withSkill({ compat: { env: ['prod'] } }),
  'gate-preconditions': withSkill({
    preconditions: { tools_available: ['act'], data_present: ['what'], invariants: ['inputs.what == "y"'] },
  }),
  'gate-clarify': withSkill({}, { inputs: {} }),
  'gate-score': withSkill({}, { why: 'no reason' }),
  'gate-policy': withSkill({ policy: { allow_roles: ['publisher'], deny_if: ['true'] } }),
  'gate-approval': withSkill({ policy: { allow_roles: ['publisher'], needs_approval_if: ['true'] } }),
  'gate-mcp': {
    async run(scope) {
      const skill_id = await skill()
      await useTool(scope, { name: skill_id.replaceAll('.', '__'), arguments: { what: 'x', reflex_why: 'do it twice' } })
      return (await logOf(stubOf(scope))).find(({ kind }) => kind === 'skill-decided')?.trace_id ?? ''
    },
  },
  'slots-parsed': withSkill(
    { llm_support: { parsers: [{ name: 'read_what', model: 'offline', temperature: 0, outputs: ['what'] }] } },
    { inputs: {}, why: 'do it twice, they said milk' },
  ),
  'slots-not-said': withSkill(
    { llm_support: { parsers: [{ name: 'read_what', model: 'offline', temperature: 0, outputs: ['what'] }] } },
    { inputs: {} },
  ),
  'approval-approved': approval(approve),
  'approval-rejected': approval(reject),
  'approval-expired': approval(expire, 1),
  'reflex-skill': {
    async run(scope) {
      await configured(scope, { blackboard: { policy: { roles: ['publisher'] } } })
      const skill_id = await skill()
      const { id } = await createVersion({ code: action(`action_type: 'run_skill', skill_id: '${skill_id}', inputs: { what: 'r' }`) })
      await configured(scope, { reflexes: [{ id }] })
      return accept(scope, 'do it twice')
    },
  },
  'plan-guarded': withSkill({
    plan: { ...planOf('second'), steps: [{ tool: 'act', args: { text: 'never' }, guard: 'inputs.what == "other"', timeout_ms: 5000 }] },
  }),
  'plan-reused': proposed({ plan: { ...planOf('second'), idempotence_key: 'k:{{what}}' } }, {}, {}),
  'plan-written': withSkill({
    effects: { writes: ['work.done'], external: [] },
    signature: {
      inputs: [{ name: 'what', type: 'string', required: true }],
      outputs: [{ name: 'done', type: 'string' }],
      blackboard_bindings: { inputs: {}, outputs: { done: 'work.done' } },
    },
  }),
  'plan-retried': withSkill({
    plan: {
      ...planOf('second'),
      steps: [{ tool: 'act', args: { text: 'busy once' }, timeout_ms: 5000, retry: { max_attempts: 3, backoff_ms: 10 } }],
    },
  }),
  'plan-timeout': withSkill({ plan: { ...planOf('second'), steps: [{ tool: 'act', args: { text: 'hang' }, timeout_ms: 50 }] } }),
  'plan-over-budget': withSkill({
    plan: {
      ...planOf('dear'),
      budget: { max_cost_usd: 1, max_latency_ms: 20_000 },
      steps: [...planOf('dear').steps, { tool: 'act', args: { text: 'third' }, timeout_ms: 5000 }],
    },
  }),
  'plan-failed': withSkill({ plan: planOf('throw') }),
  'plan-compensated': withSkill({
    plan: planOf('throw', [{ when: 'partial_failure', tool: 'act', args: { text: 'undo' } }]),
  }),
}
