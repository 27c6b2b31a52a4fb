import { describe, expect, test } from 'vitest'
import { isolateSandbox } from '../../../src/reflexes/isolate-sandbox.ts'
import { judge } from '../../../src/features/receipts/judge.ts'
import { checkReceipt } from '../../../src/features/receipts/verify.ts'
import { call } from '../../support/http.ts'
import { createVersion, replying } from '../../support/reflexes.ts'
import { evict, freshScope, inObject, note, sendAndSettle, stubOf } from '../../support/scopes.ts'

const receiptOf = (scope: string, trace_id: string, query = '') =>
  call(`/v1/traces/${trace_id}/receipt?scope=${encodeURIComponent(scope)}${query}`)

async function withReflex(code = replying('hello')) {
  const scope = freshScope()
  const { id } = await createVersion({ code })
  await stubOf(scope).configure({ reflexes: [{ id }] }, 'a test')
  return { scope, id }
}

async function accepted(scope: string, text = 'fine') {
  const event = note(scope, text)
  await sendAndSettle(stubOf(scope), event)
  return event.meta.trace_id
}

async function checked(scope: string, trace_id: string, query = '') {
  const { status, text } = await receiptOf(scope, trace_id, query)
  expect(status).toBe(200)
  const { flaws, checked } = checkReceipt(text)
  expect(flaws).toEqual([])
  const judgement = await judge(checked!, isolateSandbox())
  return { text, checked: checked!, standing: [...checked!.scopes[0]!.standing.values()], ...judgement }
}

describe('the receipt of a trace', () => {
  test('proves each decision of a reflex: its entry is signed, and its code decides the same again', async () => {
    const { scope } = await withReflex()
    const { decisions, divergences, standing, missing } = await checked(scope, await accepted(scope))
    expect(divergences).toEqual([])
    expect(missing).toEqual([])
    expect(new Set(standing)).toEqual(new Set(['signed']))
    expect(decisions.find(({ kind }) => kind === 'reflex')).toMatchObject({ verdict: 'proved' })
  })

  test('has the events of other traces as hashes alone, unless it is asked for them', async () => {
    const { scope } = await withReflex('function reflex() { return null }')
    await accepted(scope, 'the words of a neighbour')
    const trace_id = await accepted(scope, 'my own words')
    const alone = await checked(scope, trace_id)
    expect(alone.text).not.toContain('the words of a neighbour')
    expect(alone.standing).toContain('partly')
    expect(alone.decisions.find(({ kind }) => kind === 'reflex')).toMatchObject({ verdict: 'signed' })
    const all = await checked(scope, trace_id, '&neighbours=true')
    expect(all.text).toContain('the words of a neighbour')
    expect(all.decisions.find(({ kind }) => kind === 'reflex')).toMatchObject({ verdict: 'proved' })
  })

  test('continues the chain after the object was evicted, and keeps one head a minute in rows that are written anyway', async () => {
    const { scope } = await withReflex()
    const stub = stubOf(scope)
    const first = await accepted(scope)
    await evict(stub)
    const second = await accepted(scope)
    await checked(scope, first)
    await checked(scope, second)
    const rows = await inObject(stub, ({ storage }) => storage.sql.exec('SELECT chain, head FROM log ORDER BY seq').toArray())
    expect(rows.every(({ chain }) => chain instanceof ArrayBuffer)).toBe(true)
    expect(rows.filter(({ head }) => head !== null).length).toBeLessThanOrEqual(2)
  })

  test('says where the chain begins in a log that is older than the chain', async () => {
    const { scope } = await withReflex()
    const stub = stubOf(scope)
    const old = await accepted(scope)
    await inObject(stub, ({ storage }) => void storage.sql.exec('UPDATE log SET chain = NULL, head = NULL'))
    await evict(stub)
    const recent = await accepted(scope)
    const of_old = await checked(scope, old)
    expect(of_old.standing).toEqual(of_old.standing.map(() => 'unsigned'))
    expect(of_old.missing.join()).toMatch(/the chain begins at the entry \d+/)
    expect(of_old.decisions.map(({ verdict }) => verdict)).not.toContain('proved')
    expect(new Set((await checked(scope, recent)).standing)).not.toContain('unsigned')
  })
})

test('the public keys need no key', async () => {
  const { status, body } = await call('/.well-known/reflex-receipts.json', { key: null })
  expect(status).toBe(200)
  expect(body.keys).toEqual([expect.objectContaining({ key: '7db3bd5fa78952e5', algorithm: 'Ed25519', until: null })])
  expect(JSON.stringify(body)).not.toContain('"d"')
})
