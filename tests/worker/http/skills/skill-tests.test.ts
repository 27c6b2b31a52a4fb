import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { skills } from '../../../../src/artifacts/kinds.ts'
import { call, keyFor, problem } from '../../../support/http.ts'
import { freshId } from '../../../support/reflexes.ts'
import { changeTo, register, registered } from '../../../support/skills.ts'
import { skillOf } from '../../../support/scope-with-remote-tools.ts'

const testOf = (ref: string) => call(`/v1/skills/${ref}/test`)
const run = (ref: string, json: unknown = {}, key?: string) =>
  call(`/v1/skills/${ref}/test`, { json, ...(key === undefined ? {} : { key }) })

/** It names a case that nobody has sent. */
const undeclared = { 'tests.unit_cases': ['one'], 'tests.fuzz': undefined }
const one = {
  name: 'one',
  inputs: { app_name: 'shop', image_tag: 'shop:1' },
  place: { env: ['staging'], toolset: 'v6', repo: 'github.com/acme/payments' },
}

describe('the tests of a skill', () => {
  test('run without a tool, and keep their report by version and hash', async () => {
    const id = await registered()
    expect(await testOf(id)).toMatchObject(problem(404))
    const { status, body } = await run(id, { seed: 'two' })
    expect({ status, body }).toMatchObject({
      status: 200,
      body: {
        skill_id: id,
        version: '1.3.0',
        seed: 'two',
        cases: 'generated',
        unit: { n: 3, passed: 3, required: 0.95 },
        fuzz: { passed: 50, required: 0.85 },
        passed: true,
        failures: [],
        failed_in_a_row: 0,
        by: 'admin',
      },
    })
    expect((await testOf(`${id}@1.3.0`)).body).toEqual(body)
    await registered({ id, version: '2.0.0', description: 'other' })
    expect(await testOf(`${id}@2.0.0`)).toMatchObject(problem(404))
  })

  test('use the cases that the manifest names once they were sent, and keep them', async () => {
    const id = await registered(undeclared)
    expect((await run(id)).body).toMatchObject({
      passed: false,
      failed_in_a_row: 1,
      failures: [{ kind: 'unit', name: 'one', reason: 'the manifest names it, and it was not sent' }, {}],
    })
    expect((await run(id)).body.failed_in_a_row).toBe(2)
    expect((await run(id, { cases: [{ ...one, inputs: {} }] })).body.failures).toContainEqual({
      kind: 'unit',
      name: 'one',
      reason: expect.stringContaining('the gate answered clarify'),
    })
    expect((await run(id, { cases: [one] })).body).toMatchObject({ passed: true, cases: 'declared', unit: { n: 1 }, failed_in_a_row: 0 })
    expect((await run(id)).body).toMatchObject({ passed: true, unit: { n: 1, passed: 1 } })
    expect(await run(id, { cases: [{ ...one, name: 'two' }] })).toMatchObject(problem(400))
    expect(await run(id, { cases: [{ inputs: {} }] })).toMatchObject(problem(400))
  })

  test('are run by the owner of the skill and by admins alone', async () => {
    const alice = await keyFor(['operator'], ['team-a/*'], 'alice')
    const id = await registered({}, alice)
    expect(await run(id, {}, await keyFor(['operator'], ['*'], 'bob'))).toMatchObject(problem(403))
    expect(await run(id, {}, alice)).toMatchObject({ status: 200, body: { by: 'alice' } })
    expect((await call(`/v1/skills/${id}/test`, { key: await keyFor(['viewer'], ['team-b/*']) })).status).toBe(404)
  })
})

describe('a skill becomes active', () => {
  test('only after it passed its tests, which run if they never did', async () => {
    const id = await registered()
    expect(await changeTo('active', id)).toMatchObject({ status: 200, body: { state: 'active' } })
    expect((await testOf(id)).body).toMatchObject({ passed: true })
    const failing = await registered(undeclared)
    const refused = await changeTo('active', failing)
    expect(refused).toMatchObject(problem(409, 'not-tested'))
    expect(refused.body.detail).toContain('0 of 1 unit cases')
    await run(failing, { cases: [one] })
    expect(await changeTo('active', failing)).toMatchObject({ status: 200 })
  })

  test('not by any other way in the registry', async () => {
    const id = await registered()
    const change = { id, version: '1.3.0', state: 'active', reason: null, now: 1 } as const
    expect(await skills.setState(env.DB, change)).toMatchObject({ ok: false, reason: 'not_tested' })
    expect((await call(`/v1/skills/${id}`)).body.state).toBe('candidate')
  })

  test('never if it says that it undoes an effect, and does not', async () => {
    const tool = 'http.tickets.open'
    const steps = [
      { name: 'open', tool, args: { title: '{{title}}' } },
      { name: 'tell', tool: 'act', args: { text: '{{title}}' } },
    ]
    const compensation = [{ when: 'partial_failure', step: 'open', tool: 'http.tickets.close', args: { title: '{{ctx.lost}}' } }]
    const plan = { idempotence_key: 'open:{{title}}', budget: { max_cost_usd: 1, max_latency_ms: 10_000 }, steps, compensation }
    const unit_cases = [{ inputs: { title: 'it burns' }, blackboard: {} }]
    const tests = { unit_cases, fuzz: { count: 9, mutations: ['tool_404', 'tool_timeout'] } }
    const manifest = skillOf(tool, {}, { plan, effects: { external: ['opened:ticket'] }, tests })
    await call('/v1/skills', { json: manifest })
    const refused = await changeTo('active', manifest.id)
    expect(refused).toMatchObject(problem(409, 'not-tested'))
    expect(refused.body.detail).toContain('http.tickets.open was not undone')
  })

  test('by force of an operator with a reason, which its provenance shows', async () => {
    const id = await registered(undeclared)
    const forced = { state: 'active', force: true, reason: 'the incident needs it' }
    expect(await call(`/v1/skills/${id}/state`, { json: { ...forced, reason: undefined } })).toMatchObject(problem(400))
    const { status, body } = await call(`/v1/skills/${id}/state`, { json: forced })
    expect({ status, body }).toMatchObject({
      status: 200,
      body: {
        state: 'active',
        state_reason: 'the incident needs it',
        provenance: { by: 'admin', forced: { by: 'admin', reason: 'the incident needs it', at: expect.any(Number) } },
      },
    })
    expect((await call(`/v1/skills/${id}`)).body.provenance).toEqual(body.provenance)
  })

  test('again after it was deprecated, by the same report', async () => {
    const id = await registered({ id: freshId('again') })
    await changeTo('active', id)
    const before = (await testOf(id)).body
    await changeTo('deprecated', id)
    expect(await changeTo('active', id)).toMatchObject({ status: 200 })
    expect((await testOf(id)).body).toEqual(before)
    expect((await register({ id })).status).toBe(200)
  })
})
