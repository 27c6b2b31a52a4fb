import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { LEDGER } from '../../../src/features/market/contract/ledger-api.ts'
import { call } from '../../support/http.ts'
import { buildListing } from '../../support/market.ts'
import { acting } from '../../support/reflex-chain.ts'
import { entriesOf, evict, freshScope, inObject, note, runAlarm, sendAndSettle, stubOf, until } from '../../support/scopes.ts'

const ledger = env.LEDGER.getByName(LEDGER)

/** The arguments of a call that spends 6, and what the Ledger has once it was made. */
const kinds = {
  'genesis_ledger.transfer': {
    args: async (other: string) => [other, 6],
    made: async (_: string, other: string) => (await ledger.account(other))?.balance === 7,
  },
  'genesis_escrow.offer': {
    args: async (other: string) => {
      const { listing_id, artifact, kind, seller, terms } = buildListing(
        { id: crypto.randomUUID(), version: 1, hash: other },
        { listing_id: other, seller: other },
      )
      const goods = {
        hash: other,
        state: 'active',
        original: null,
        description: '',
        event_types: [],
        tools: [],
        owner_scopes: [],
        origins: [],
      }
      await ledger.list({ listing_id, artifact, kind, seller, terms, price: 6 }, goods, { name: 'test', opens: [other] })
      return [other]
    },
    made: async (account: string) => (await ledger.deals({ account, after: null, limit: 1 })).items[0]?.status === 'offered',
  },
  'genesis_contracts.propose': {
    args: async (other: string) => [other, 'reflex:greet', 3, 2],
    made: async (account: string) => (await ledger.contracts({ account, after: null, limit: 1 })).items[0]?.status === 'proposed',
  },
}
const tools = Object.keys(kinds) as (keyof typeof kinds)[]

/** A scope whose reflex asked twice for the same payment, and the approval. */
async function asked(tool: keyof typeof kinds) {
  const other = `scope:${freshScope()}`
  await ledger.mint({ id: `mint:${other}`, to: other, amount: 1 }, { name: 'test', opens: [other] })
  const { args, made } = kinds[tool]
  const [artifact_id, method] = tool.split('.')
  const action = { action_type: 'invoke_artifact', artifact_id, method, args: await args(other) }
  const { scope, stub } = await acting(`return context.event.type === 'test.note' ? ${JSON.stringify(action)} : null`)
  await stub.configure({ market: { opening_grant: 30, without_approval: 5 } }, 'test')
  await stub.poke()
  for (const text of ['a', 'b']) await sendAndSettle(stub, note(scope, text))
  const { body } = await call(`/v1/approvals?scope=${encodeURIComponent(scope)}`)
  expect(body.items).toMatchObject([{ kind: 'payment', skill_id: tool, inputs: { amount: 6, to: other }, status: 'pending', run: null }])
  const { id } = body.items[0] as { id: string }
  const decide = (verb: 'approve' | 'reject') => call(`/v1/approvals/${id}/${verb}`, { json: {} })
  const run = async () => (await call(`/v1/approvals/${id}`)).body.run
  const account = `scope:${scope}`
  return { id, scope, stub, account, decide, run, made: () => made(account, other) }
}

const told = async (scope: string) => {
  const entries = [...(await entriesOf(stubOf(scope), 'approval-requested')), ...(await entriesOf(stubOf(scope), 'approval-decided'))]
  return entries.map(({ span_id, skill_id, status }) => ({ span_id, skill_id, status }))
}

describe.each(tools)('a payment above what an agent may spend, by %s,', (tool) => {
  test('waits for a person, and is made once if it is approved', async () => {
    const { id, scope, account, decide, run, made } = await asked(tool)
    expect([await made(), (await ledger.account(account))?.available]).toEqual([false, 30])
    expect(await decide('approve')).toMatchObject({ status: 200, body: { status: 'approved' } })
    await until(made, 'it is made')
    const available = tool === 'genesis_contracts.propose' ? 30 : 24
    expect(await decide('approve')).toMatchObject({ status: 409 })
    await evict(stubOf(scope))
    await stubOf(scope).poke()
    expect(await ledger.account(account)).toMatchObject({ available })
    expect((await entriesOf(stubOf(scope), 'effect-ended')).at(-1)).toMatchObject({ status: 'ok', idempotence_key: `approval:${id}` })
    const ended = await until(async () => (await run())?.ended_at && run(), 'D1 knows of its end')
    expect(ended).toMatchObject({ run_id: null, status: 'ok', reason: null, steps: [{ tool, status: 'ok' }] })
    expect(Object.keys((ended as { outputs: object }).outputs)).not.toEqual([])
    const [requested, decided] = await told(scope)
    expect(decided).toEqual({ ...requested, status: 'approved' })
  })

  test('is not made if it is rejected, or if nobody answers', async () => {
    const [rejected, expired] = [await asked(tool), await asked(tool)]
    expect(await rejected.decide('reject')).toMatchObject({ status: 200 })
    await env.DB.prepare('UPDATE approvals SET expires_at = 1 WHERE id = ?').bind(expired.id).run()
    expect(await expired.decide('approve')).toMatchObject({ status: 409 })
    await expired.stub.approvalDecided(expired.id)
    for (const [one, status] of [
      [rejected, 'rejected'],
      [expired, 'expired'],
    ] as const) {
      await until(async () => (await told(one.scope)).length === 2, `it is ${status}`)
      expect((await told(one.scope))[1]).toMatchObject({ skill_id: tool, status })
      const left = await inObject(one.stub, ({ storage: { sql } }) => sql.exec('SELECT * FROM parked_runs').toArray())
      expect([left, await one.made(), await one.run()]).toEqual([[], false, null])
      expect(await ledger.account(one.account)).toMatchObject({ available: 30 })
    }
  })
})

test('an approved payment that the Ledger refuses says why', async () => {
  const { stub, decide, run } = await asked('genesis_ledger.transfer')
  await stub.configure({ market: { per_day: 5 } }, 'test')
  await stub.poke()
  await runAlarm(ledger)
  await decide('approve')
  await until(async () => (await run())?.ended_at, 'D1 knows of its end')
  expect(await run()).toMatchObject({ status: 'failed', reason: expect.stringContaining('per_day') })
})
