import { env } from 'cloudflare:workers'
import { expect, test } from 'vitest'
import { LEDGER } from '../../../src/features/market/contract/ledger-api.ts'
import { reflexes } from '../../../src/artifacts/kinds.ts'
import { insertApproval } from '../../../src/features/approvals/store/approvals.ts'
import { deliverLicence } from '../../../src/features/market/store/ownership.ts'
import { certify } from '../../support/certificates.ts'
import { call, keyFor, problem } from '../../support/http.ts'
import { acting, did, write } from '../../support/reflex-chain.ts'
import { entriesOf, freshScope, inObject, note, runAlarm, sendAndSettle, stubOf, until } from '../../support/scopes.ts'
import { skill, twoSteps } from '../../support/two-step-skill.ts'

const ledger = env.LEDGER.getByName(LEDGER)
/** The alarm may be running already: until it has ended, the scopes have older views. */
const pushed = () =>
  until(async () => {
    await runAlarm(ledger)
    const waiting = ({ storage }: DurableObjectState) => storage.sql.exec<{ n: number }>('SELECT count(*) AS n FROM outbox').one().n
    return (await inObject(ledger as never, waiting)) === 0
  }, 'the Ledger has sent its messages')

/** A scope that serves a reflex, and one whose reflex calls it on each note. */
async function service(balance: number) {
  const provider = await acting(`
    if (context.event.type !== 'invocation' || context.event.name === undefined) return null
    return { action_type: 'reply', content: 'Hello ' + context.event.name }`)
  const caller = await acting(`
    if (context.event.type !== 'test.note') return null
    return { action_type: 'invoke_artifact', artifact_id: '${provider.id}', method: 'run', args: [{ name: context.event.text }] }`)
  await caller.stub.configure({ market: { without_approval: 0 } }, 'test')
  const [pays, earns] = [`scope:${caller.scope}`, `scope:${provider.scope}`]
  await ledger.mint({ id: `mint:${pays}`, to: pays, amount: balance }, { name: 'test', opens: [pays] })
  await ledger.mint({ id: `mint:${earns}`, to: earns, amount: 1 }, { name: 'test', opens: [earns] })
  const keys = { caller: await keyFor(['operator'], [caller.scope]), provider: await keyFor(['operator'], [provider.scope]) }
  return { caller, provider, pays, earns, keys }
}

test('a scope calls the reflex of another one under a contract, from its proposal to a dispute', async () => {
  const { caller, provider, pays, earns, keys } = await service(10)
  const id = crypto.randomUUID()
  const terms = { id, proposer: pays, counterparty: earns, service: `reflex:${provider.id}`, price_per_invocation: 4, limit: 1 }
  const post = (key: string, path: string, json: object = {}) => call(`/v1/market/contracts${path}`, { key, json })
  expect(await post(keys.caller, '', { ...terms, counterparty: 'scope:nobody' })).toMatchObject({ status: 404 })
  expect(await post(keys.provider, '', terms)).toMatchObject({ status: 403 })
  expect(await post(keys.caller, '', terms)).toMatchObject({ status: 201, body: { status: 'proposed' } })
  expect(await post(keys.caller, '', terms)).toMatchObject({ status: 200 })
  expect(await post(keys.caller, '', { ...terms, limit: 2 })).toMatchObject({ status: 409 })
  expect(await post(keys.caller, `/${id}/accept`)).toMatchObject({ status: 403 })
  const stranger = await keyFor(['operator'], [freshScope()])
  expect(await post(stranger, `/${id}/accept`)).toMatchObject({ status: 404 })

  const invoke = async (name: string) => {
    await sendAndSettle(caller.stub, note(caller.scope, name))
    return (await entriesOf(caller.stub, 'effect-ended')).at(-1)
  }
  await pushed()
  expect((await invoke('early'))?.error).toContain('no contract in force')
  expect(await post(keys.provider, `/${id}/accept`)).toMatchObject({ status: 200, body: { status: 'accepted' } })
  await pushed()
  const served = await invoke('Ann')
  expect(served).toMatchObject({ tool: 'genesis_contracts.invoke', status: 'ok' })
  expect(served?.output).toMatchObject({ contract_id: id, output: { action: { action_type: 'reply', content: 'Hello Ann' } } })
  expect((await invoke('Bob'))?.error).toContain('used up')
  const [received, ...others] = await entriesOf(provider.stub, 'call-received')
  expect([received, ...others]).toMatchObject([{ call: 'reflex', name: provider.id, by: pays, trace_id: served?.trace_id }])
  expect([await ledger.account(pays), await ledger.account(earns)]).toMatchObject([{ balance: 6, available: 6 }, { balance: 5 }])

  expect(await post(keys.caller, `/${id}/end`, { reason: 'enough' })).toMatchObject({ body: { status: 'ended', invocations: 1, paid: 4 } })
  const trace = 'b'.repeat(32)
  expect(await post(keys.caller, `/${id}/dispute`, { reason: 'wrong name', traces: [trace] })).toMatchObject({
    body: { status: 'disputed', disputes: [{ by: pays, reason: 'wrong name', traces: [trace, served?.trace_id] }] },
  })
  expect(await call(`/v1/market/contracts/${id}`, { key: keys.provider })).toMatchObject({ status: 200, body: { status: 'disputed' } })
  const listed = (account: string, key: string) => call(`/v1/market/contracts?account=${encodeURIComponent(account)}`, { key })
  expect(await listed(earns, keys.provider)).toMatchObject({ body: { items: [{ contract_id: id }], next_cursor: null } })
  expect(await listed(pays, keys.provider)).toMatchObject({ status: 403 })
})

test('a repeated call of a skill runs it once', async () => {
  const scope = freshScope()
  // Its tau is above 0: the contract names it, so that no cues are needed.
  const id = await skill()
  const asked = {
    contract_id: 'c',
    invocation_id: crypto.randomUUID(),
    caller: 'scope:shop',
    service: `skill:${id}`,
    input: { what: 'it' },
  }
  const first = await stubOf(scope).serve(asked)
  expect(JSON.parse(first)).toMatchObject({ ok: true, output: { done: 'it' } })
  expect(JSON.parse(await stubOf(scope).serve(asked))).toMatchObject({ ok: true, output: { done: 'it' } })
  expect(did(scope)).toEqual(['first it', 'second it'])
})

const asks = async (scope: string, service: string, input = {}) => {
  const asked = { contract_id: 'c', invocation_id: crypto.randomUUID(), caller: 'scope:shop', service, input }
  return JSON.parse(await stubOf(scope).serve(asked)) as unknown
}

test('a call of a skill that needs an approval is refused, and does not wait to run unpaid', async () => {
  const scope = freshScope()
  const id = await skill({ policy: { allow_roles: ['publisher', 'agent'], needs_approval_if: ['true'] } })
  expect(await asks(scope, `skill:${id}`, { what: 'it' })).toMatchObject({
    ok: false,
    detail: expect.stringContaining('needs an approval'),
  })
  const { body } = await call(`/v1/approvals?scope=${encodeURIComponent(scope)}`)
  expect(body.items).toEqual([])
  expect(did(scope)).toEqual([])
})

test('a run of a contract that was parked is not approved, since nobody pays for it', async () => {
  const request = {
    scope: freshScope(),
    kind: 'run',
    skill_id: 'x',
    version: '1.0.0',
    manifest_hash: '',
    inputs_hash: '',
    inputs: {},
  } as const
  const by = { requested_by: 'scope:shop', requested_key: 'contract:c', self_approval: false }
  const times = { created_at: Date.now(), expires_at: Date.now() + 60_000 }
  const id = crypto.randomUUID()
  await insertApproval(env.DB, { id, ...request, why: 'a call', ...by, ...times })
  expect(await call(`/v1/approvals/${id}/approve`, { json: {} })).toMatchObject(problem(409, 'skill-inactive'))
  expect(await call(`/v1/approvals/${id}/reject`, { json: {} })).toMatchObject({ status: 200 })
})

test('a scope does not serve a skill that it has a licence for', async () => {
  const [scope, other] = [freshScope(), await keyFor(['operator'], [freshScope()])]
  const id = await skill({}, 'active')
  expect(await asks(scope, `skill:${id}`, { what: 'own' })).toMatchObject({ ok: true })
  const licensed = `licensed.s${crypto.randomUUID().slice(0, 8)}`
  expect(await call('/v1/skills', { key: other, json: twoSteps(licensed) })).toMatchObject({ status: 201 })
  await call(`/v1/skills/${licensed}/state`, { json: { state: 'active' } })
  const { hash } = (await call(`/v1/skills/${licensed}@1.0.0`)).body
  const named = { kind: 'skill' as const, id: licensed, version: '1.0.0' }
  const right = {
    ...named,
    deal_id: licensed,
    hash,
    expires_at: null,
    fires: null,
    metered: false,
    in_use: true,
    ended_at: null,
    pattern: scope,
  }
  await deliverLicence(env.DB, named, [right])
  expect(await asks(scope, `skill:${licensed}`, { what: 'it' })).toMatchObject({
    ok: false,
    detail: expect.stringContaining('may not sell its answers'),
  })
  expect(did(scope)).toEqual(['first own', 'second own'])
})

test('a reflex that acts by proof is served while its certificate is in force', async () => {
  const scope = freshScope()
  const version = await write(`return { action_type: 'reply', content: 'hi' }`, { scope, state: 'shadow' })
  const { id } = version
  await reflexes.setState(env.DB, { id, version: 1, state: 'active', reason: null, by_proof: true, now: Date.now() })
  await stubOf(scope).configure({ reflexes: [{ id }] }, 'ops')
  expect(await asks(scope, `reflex:${id}`)).toMatchObject({ ok: false, detail: expect.stringContaining('never compared') })
  await certify(scope, version)
  expect(await asks(scope, `reflex:${id}`)).toMatchObject({ ok: true, output: { action: { content: 'hi' } } })
})

test('the reflex that is called does not see the message of the call, which others do', async () => {
  const scope = freshScope()
  const answers = `return { action_type: 'ignore', reason: context.event.type }`
  const [called, other] = [await write(answers, { scope }), await write(answers, { scope })]
  await stubOf(scope).configure({ market: {}, reflexes: [{ id: called.id }, { id: other.id }] }, 'ops')
  const view = await ledger.view(scope)
  const event = { id: 'invocation:1', type: 'invocation' as const, caller: 'scope:shop', artifact: called.id }
  await stubOf(scope).marketChanged(view, [{ ...event, service: `reflex:${called.id}` }])
  expect(await entriesOf(stubOf(scope), 'reflex-fired')).toMatchObject([{ reflex_id: other.id }])
})

test('a scope does not serve a reflex of another owner, although its chain names the version', async () => {
  const scope = freshScope()
  const { id, version } = await write(`return { action_type: 'reply', content: 'hi' }`, { scope: freshScope(), sharing: 'org' })
  await stubOf(scope).configure({ reflexes: [{ id, version }] }, 'ops')
  expect(await asks(scope, `reflex:${id}`)).toMatchObject({ ok: false, detail: expect.stringContaining('is not of scope') })
})
