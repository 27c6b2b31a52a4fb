import { env } from 'cloudflare:workers'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { followControlPlane } from '../../../../src/features/control-plane/follow.ts'
import { skills } from '../../../../src/artifacts/kinds.ts'
import type { KeptVerdicts } from '../../../../src/features/control-plane/client/verdicts.ts'
import { readControlPlane } from '../../../../src/features/control-plane/store/control-plane.ts'
import {
  activeThere,
  clientEnv,
  controlCall,
  controlPlaneNetwork,
  feedItem,
  prepareControlPlane,
  stateThere,
} from '../../../support/control-plane.ts'
import { CONTROL_HOST, CONTROLLED, LIMITED } from '../../../support/control-plane-variables.ts'
import { call, callWith, scopePath } from '../../../support/http.ts'
import { did } from '../../../support/reflex-chain.ts'
import { freshId } from '../../../support/reflexes.ts'
import { entriesOf, evict, freshScope, inObject, stubOf, until } from '../../../support/scopes.ts'
import { propose, twoSteps } from '../../../support/two-step-skill.ts'

const MINUTE_MS = 60_000
let network: ReturnType<typeof controlPlaneNetwork>
const HOUR_MS = 60 * MINUTE_MS
// The time of the last report is noted once an hour: no hour begins while the tests advance.
let now = Math.ceil(Date.now() / HOUR_MS) * HOUR_MS

beforeAll(async () => {
  await prepareControlPlane()
  network = controlPlaneNetwork()
})
afterEach(() => {
  network.fault(null)
  network.asked()
})
afterAll(() => network.restore())

const follow = () => followControlPlane(clientEnv, (now += MINUTE_MS))
const here = async ({ id, version }: { id: string; version: string }) => skills.find(env.DB, id, version)
const stateOf = async () => (await readControlPlane(env.DB)) ?? { revision: -1, skipped: {}, failing_since: null }
const health = async () => (await callWith(clientEnv, '/health/detailed')).body
const unreachable = () => {
  throw new Error('connect ECONNREFUSED')
}

describe('the skills of a control plane', () => {
  test('come into the registry, run in a scope, and are deprecated once they are withdrawn', async () => {
    const version = await activeThere(twoSteps(freshId('skill')))
    await follow()
    expect(await here(version)).toMatchObject({ state: 'active', owner: 'control-plane', owner_id: 'control-plane' })
    const scope = freshScope(CONTROLLED)
    await stubOf(scope).configure({ env: 'dev' }, 'ops')
    expect(await propose(scope, version.id)).toMatchObject({ status: 'ok' })
    await stateThere('deprecated', version)
    await follow()
    expect(await here(version)).toMatchObject({ state: 'deprecated', state_reason: 'withdrawn by the control plane' })
    await stateThere('active', version)
    await follow()
    expect(await here(version)).toMatchObject({ state: 'active' })
  })

  test('stay deprecated where this deployment has deprecated them, also when the feed is read as a whole', async () => {
    const version = await activeThere(twoSteps(freshId('skill')))
    await follow()
    await skills.setState(env.DB, { ...version, state: 'deprecated', reason: 'it deletes too much', now })
    await env.CONTROL_DB.prepare('UPDATE artifact_versions SET revision = 1').run()
    await follow()
    expect(await here(version)).toMatchObject({ state: 'deprecated', state_reason: 'it deletes too much' })
    expect((await stateOf()).skipped).toMatchObject({
      [`${version.id}@${version.version}`]: 'it was deprecated in this deployment: it deletes too much',
    })
    await env.CONTROL_DB.prepare('UPDATE artifact_versions SET revision = 1000').run()
    await follow()
  })

  test('are read once: an unchanged feed is one request, and writes nothing', async () => {
    await activeThere(twoSteps(freshId('skill')))
    await follow()
    const before = await stateOf()
    network.asked()
    await follow()
    expect(network.asked()).toEqual(['/v1/skills/sync'])
    expect(await stateOf()).toEqual(before)
  })

  test('do not replace a skill of another owner', async () => {
    const id = freshId('skill')
    const own = await callWith(clientEnv, '/v1/skills', { json: twoSteps(id, { description: 'ours' }) })
    expect(own).toMatchObject({ status: 201 })
    const version = await activeThere(twoSteps(id))
    await follow()
    expect(await here(version)).toMatchObject({ owner: 'admin', state: 'candidate', manifest: { description: 'ours' } })
    expect((await health()).control_plane.skipped).toContainEqual({ version: `${id}@1.0.0`, reason: expect.stringContaining('belongs to') })
  })

  test.each([
    ['another hash', (item: object) => ({ ...item, hash: '0'.repeat(64) }), 'hash'],
    ['a manifest of another id', (item: object) => ({ ...item, id: 'other.id' }), 'another id'],
  ])('are skipped with %s', async (_name, change, reason) => {
    const item = change(await feedItem(twoSteps(freshId('skill')))) as { id: string; version: string }
    const { revision } = await stateOf()
    network.fault(() => Response.json({ items: [item], revision, more: false }))
    await follow()
    expect(await here(item)).toBeNull()
    expect((await stateOf()).skipped).toMatchObject({ [`${item.id}@${item.version}`]: expect.stringContaining(reason) })
  })

  test('that the restored registry of the control plane lacks are deprecated', async () => {
    const [kept, lost] = [await activeThere(twoSteps(freshId('skill'))), await activeThere(twoSteps(freshId('skill')))]
    await follow()
    await env.CONTROL_DB.prepare('DELETE FROM artifact_versions WHERE id = ?').bind(lost.id).run()
    await env.CONTROL_DB.prepare('UPDATE artifact_versions SET revision = 1').run()
    await follow()
    expect([await here(kept), await here(lost)]).toMatchObject([{ state: 'active' }, { state: 'deprecated' }])
    await env.CONTROL_DB.prepare('UPDATE artifact_versions SET revision = 1000').run()
    await follow()
  })

  test.each<[string, (asked: Request) => Response]>([
    ['does not answer', unreachable],
    ['answers with an error', () => Response.json({ detail: 'a secret' }, { status: 503 })],
    ['answers with garbage', () => new Response('<html>', { headers: { 'content-type': 'text/html' } })],
    ['answers in another form', () => Response.json({ items: [{ id: 1 }], revision: 'x' })],
    ['repeats a page', () => Response.json({ items: [], revision: 0, more: true })],
    ['answers with more than the limit', () => Response.json({ items: [], text: 'x'.repeat(9_000_000), revision: 1, more: false })],
    ['redirects to another host', () => Response.redirect('https://elsewhere.example.com/v1', 302)],
  ])('stay while it %s; health reports it, and the log once', async (_name, fault) => {
    const version = await activeThere(twoSteps(freshId('skill')))
    await follow()
    const warned = vi.spyOn(console, 'warn')
    network.fault(fault)
    await follow()
    await follow()
    expect(await here(version)).toMatchObject({ state: 'active' })
    const degraded = await health()
    expect(degraded).toMatchObject({ status: 'degraded', control_plane: { status: 'degraded', failing_since: expect.any(String) } })
    expect(JSON.stringify(degraded)).not.toContain('a secret')
    network.fault(null)
    await follow()
    expect(await health()).toMatchObject({ control_plane: { status: 'ok', failing_since: null, error: null } })
    const lines = warned.mock.calls.map(([line]) => String(line)).filter((line) => line.includes('the control plane'))
    expect(lines).toEqual([expect.stringContaining('is away'), expect.stringContaining('answers again')])
    warned.mockRestore()
  })
})

describe('the policy of a control plane', () => {
  async function controlled(environment: string | null = 'dev') {
    const { id, version } = await activeThere(twoSteps(freshId('skill')))
    await follow()
    network.asked()
    const scope = freshScope(CONTROLLED)
    if (environment !== null) await stubOf(scope).configure({ env: environment }, 'ops')
    return { scope, id, version, stub: stubOf(scope) }
  }
  /** The object restarts, with verdicts that are ten minutes old. */
  async function tenMinutesLater(stub: ReturnType<typeof stubOf>) {
    await inObject(stub, ({ storage }) => {
      const [row] = storage.sql.exec<{ value: string }>(`SELECT value FROM state WHERE key = 'control_plane'`).toArray()
      const kept = JSON.parse(row?.value ?? '{}') as KeptVerdicts
      for (const verdict of Object.values(kept.verdicts)) verdict.asked_at -= 10 * MINUTE_MS
      storage.sql.exec(`UPDATE state SET value = ? WHERE key = 'control_plane'`, JSON.stringify(kept))
    })
    await evict(stub)
  }

  test('is asked before a skill runs, once a minute, and its verdict is in the logged decision', async () => {
    const { scope, id, stub } = await controlled()
    expect(await propose(scope, id)).toMatchObject({ status: 'ok' })
    expect(await propose(scope, id)).toMatchObject({ status: 'ok' })
    expect(network.asked()).toEqual(['/v1/policy/check'])
    expect(await entriesOf(stub, 'skill-decided')).toMatchObject([
      { request: { control_plane: { verdict: 'allow', cached: false } }, decision: { verdict: 'allow' } },
      { request: { control_plane: { verdict: 'allow', cached: true } } },
    ])
    await tenMinutesLater(stub)
    expect(await propose(scope, id)).toMatchObject({ status: 'ok' })
    expect(network.asked()).toEqual(['/v1/policy/check'])
  })

  test('refuses what was not promoted to the environment of the scope, also where the own policy is only observed', async () => {
    const { scope, id, stub } = await controlled('prod')
    await stub.configure({ policy_mode: 'observe' }, 'ops')
    const refused = { status: 'refused', decision: { verdict: 'needs_promotion', to_pass: [expect.stringContaining('promoted to prod')] } }
    expect(await propose(scope, id)).toMatchObject(refused)
    expect(did(scope)).toEqual([])
  })

  test('is not asked for what the own gate refuses', async () => {
    const { scope, id } = await controlled()
    expect(await propose(scope, id, { why: 'something else' })).toMatchObject({ status: 'refused' })
    expect(network.asked()).toEqual([])
  })

  test('refuses a scope without an environment', async () => {
    const { scope, id } = await controlled(null)
    expect(await propose(scope, id)).toMatchObject({ status: 'refused', reason: expect.stringContaining('no environment is set') })
    expect(network.asked()).toEqual([])
  })

  test.each<[string, (asked: Request) => Response]>([
    ['does not answer', unreachable],
    ['has revoked the key', () => Response.json({}, { status: 401 })],
    ['answers with garbage', () => Response.json({ verdict: 'yes' })],
  ])('is the cached one while it %s, also after an eviction; what it was never asked about does not run', async (_name, fault) => {
    const { scope, id, stub } = await controlled()
    expect(await propose(scope, id)).toMatchObject({ status: 'ok' })
    const other = await activeThere(twoSteps(freshId('skill')))
    await follow()
    network.fault(fault)
    await tenMinutesLater(stub)
    expect(await propose(scope, id)).toMatchObject({ status: 'ok' })
    await evict(stub)
    expect(await propose(scope, id)).toMatchObject({ status: 'ok' })
    expect(await propose(scope, other.id)).toMatchObject({
      status: 'refused',
      reason: expect.stringContaining('no verdict of it is cached'),
    })
    expect(await entriesOf(stub, 'skills-degraded')).toMatchObject([{ source: 'control-plane' }])
    network.fault(null)
    await evict(stub)
    expect(await propose(scope, other.id)).toMatchObject({ status: 'ok' })
    expect(await entriesOf(stub, 'skills-restored')).toMatchObject([{ source: 'control-plane' }])
  })

  test('that does not answer is not asked again for half a minute', async () => {
    const { scope, id } = await controlled()
    network.fault(unreachable)
    await propose(scope, id)
    await propose(scope, id)
    expect(network.asked()).toEqual(['/v1/policy/check'])
  })

  test('is repeated by a replay without a request', async () => {
    const { scope, id } = await controlled('prod')
    const { trace_id } = await propose(scope, id)
    await until(async () => (await callWith(clientEnv, `/v1/traces/${trace_id}`)).status === 200, 'the trace is replicated')
    network.asked()
    const { body } = await callWith(clientEnv, `/v1/traces/${trace_id}/replay`, { json: {} })
    expect(body).toMatchObject({ compared: 1, equivalent: true, divergences: [] })
    expect(network.asked()).toEqual([])
  })
})

describe('the telemetry for a control plane', () => {
  test('has the numbers of each ended hour, once', async () => {
    const skill_id = freshId('skill')
    const hour = 3_600_000
    await follow()
    const { reported_until } = (await readControlPlane(env.DB)) ?? { reported_until: 0 }
    const start = reported_until ?? 0
    const insert = 'INSERT INTO statistics (family, bucket, start, scope, "values") VALUES (?, ?, ?, ?, ?)'
    const mine = { ok: 3, failed: 1, turns: 2, turn_cost_usd: 0.2, 'turn_ms.56': 2 }
    const all = { turns: 4, turn_cost_usd: 0.6, 'turn_ms.56': 2, 'turn_ms.64': 2 }
    await env.DB.prepare(insert)
      .bind('skill', 'hour', start, 'a/b', JSON.stringify({ [skill_id]: mine }))
      .run()
    await env.DB.prepare(insert)
      .bind('scope', 'hour', start, 'a/b', JSON.stringify({ '': all }))
      .run()
    now = Math.max(now, start + hour + 6 * MINUTE_MS)
    network.asked()
    network.fault((asked) => (asked.url.includes('telemetry') ? unreachable() : null))
    await follow()
    network.fault(null)
    await follow()
    await follow()
    expect(network.asked().filter((path) => path === '/v1/telemetry')).toHaveLength(2)
    expect((await controlCall(`/v1/telemetry?skill_id=${skill_id}`)).body.items).toMatchObject([
      { skill_id, clients: 1, calls: 4, success: 3, delta_cost: expect.closeTo(-0.5, 6), delta_p95: expect.any(Number) },
    ])
  })
})

describe('what a deployment lets the skills of its control plane do', () => {
  async function pushed({
    place = `${LIMITED}/x`,
    settings = {},
    ...changes
  }: { place?: string; settings?: object; plan?: object; activation?: object } = {}) {
    const scope = freshScope(place)
    const { id } = await activeThere(twoSteps(freshId('skill'), changes))
    await follow()
    await stubOf(scope).configure({ env: 'dev', ...settings }, 'ops')
    return { scope, id }
  }

  test('is what a person approved, if it has effects, also where the policy is only observed', async () => {
    const { scope, id } = await pushed({ settings: { policy_mode: 'observe' } })
    const asked = await propose(scope, id)
    expect(asked).toMatchObject({
      status: 'needs_approval',
      reason: expect.stringContaining('it came from the control plane, and act may'),
    })
    expect(did(scope)).toEqual([])
    await call(`/v1/approvals/${asked.approval_id}/approve`, { method: 'POST' })
    await until(async () => did(scope).length === 2, 'the approved run is over')
  })

  test.each([
    ['runs with an HTTP tool that gets', 'GET', { approval_id: null, decision: { verdict: 'allow' } }],
    ['waits for a person with an HTTP tool that posts', 'POST', { status: 'needs_approval' }],
  ] as const)('%s', async (_what, method, expected) => {
    const http_tools = [{ name: 'http.look', description: 'looks', method, url: `https://${CONTROL_HOST}/look` }]
    const plan = { ...twoSteps('x').plan, idempotence_key: 'look', steps: [{ tool: 'http.look' }] }
    const { scope, id } = await pushed({ settings: { http_tools, allowed_hosts: [CONTROL_HOST] }, plan })
    expect(await propose(scope, id)).toMatchObject(expected)
  })

  test.each([
    ['a tool that is not listed', { plan: { ...twoSteps('x').plan, steps: [{ tool: 'act_once', args: { text: 'x' } }] } }, 'uses act_once'],
    ['a scope that is not listed', { place: `${LIMITED}-elsewhere/x` }, 'does not list the scope'],
  ])('is nothing with %s', async (_what, given, reason) => {
    const { scope, id } = await pushed(given)
    expect(await propose(scope, id)).toMatchObject({ status: 'refused', reason: expect.stringContaining(reason) })
    expect((await call(scopePath(scope, '/bulletin?text=twice'))).text).not.toContain(id)
  })

  test('is nothing that the operators of a scope refuse, also where the policy is only observed', async () => {
    // A word that no other skill of this file has: a bulletin shows the best five.
    const word = freshId('word')
    const activation = { ...twoSteps('x').activation, keywords_any: ['twice', word] }
    const { scope, id } = await pushed({ place: CONTROLLED, settings: { policy_mode: 'observe' }, activation })
    expect((await call(scopePath(scope, `/bulletin?text=${word}`))).text).toContain(id)
    for (const refused of [id, `${id}@1.0.0`, `${id.slice(0, 8)}*`]) {
      await stubOf(scope).configure({ refused_skills: [refused] }, 'ops')
      expect(await propose(scope, id)).toMatchObject({ status: 'refused', reason: expect.stringContaining('refused_skills') })
    }
    expect((await call(scopePath(scope, `/bulletin?text=${word}`))).text).not.toContain(id)
    await stubOf(scope).configure({ refused_skills: [`${id}@2.0.0`] }, 'ops')
    expect(await propose(scope, id)).toMatchObject({ status: 'ok' })
  })
})
