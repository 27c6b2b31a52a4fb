import { describe, expect, test } from 'vitest'
import { isolateSandbox } from '../../../src/reflexes/isolate-sandbox.ts'
import { env } from 'cloudflare:workers'
import { judge } from '../../../src/features/receipts/judge.ts'
import { provenAt } from '../../../src/features/receipts/prove.ts'
import { checkArchive } from '../../../src/features/receipts/verify-archive.ts'
import { checkExport, checkReceipt, forksIn } from '../../../src/features/receipts/verify.ts'
import { ARCHIVED, hooks } from '../../support/archive-bucket.ts'
import { call, keyFor } from '../../support/http.ts'
import { createVersion, replying } from '../../support/reflexes.ts'
import { behaviours } from '../../support/test-agents.ts'
import { propose, skill } from '../../support/two-step-skill.ts'
import { age, evict, freshScope, inObject, note, sendAndSettle, stubOf, until } from '../../support/scopes.ts'

const receiptOf = (scope: string, trace_id: string, query = '') =>
  call(`/v1/traces/${trace_id}/receipt?scope=${encodeURIComponent(scope)}${query}`)

async function withReflex(code = replying('hello'), scope = freshScope()) {
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

  test('proves the gate and the plan of a skill, which are decided again from the signed manifest', async () => {
    const scope = freshScope()
    const { trace_id } = await propose(scope, await skill())
    const { decisions, divergences, missing } = await checked(scope, trace_id)
    const proved = decisions.filter(({ verdict }) => verdict === 'proved').map(({ kind }) => kind)
    expect(divergences).toEqual([])
    expect(missing).toEqual([])
    expect(proved).toEqual(expect.arrayContaining(['gate', 'plan', 'step']))
    expect(decisions.filter(({ verdict }) => verdict !== 'proved')).toEqual([])
  })

  test('proves a turn whose prompt quotes its event, with or without the events of other traces', async () => {
    const scope = freshScope()
    await stubOf(scope).configure({ agent: 'prompted', instructions: 'Answer in one line.' }, 'a test')
    const trace_id = await accepted(scope)
    for (const query of ['', '&neighbours=true']) {
      const { decisions, divergences } = await checked(scope, trace_id, query)
      expect(divergences).toEqual([])
      expect(decisions.filter(({ kind }) => kind === 'turn' || kind === 'model').map(({ verdict }) => verdict)).toEqual([
        'proved',
        'proved',
      ])
    }
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

test('an exported trace has the way from each entry to a signed head, also of an entry with a context, and shows a change', async () => {
  const { scope } = await withReflex('function reflex() { return null }')
  await accepted(scope, 'the words of a neighbour')
  const trace_id = await accepted(scope, 'my own words')
  const { body } = await call(`/v1/traces/${trace_id}/export?scope=${encodeURIComponent(scope)}`)
  const { flaws, checked: file } = checkExport(JSON.stringify(body))
  expect(flaws).toEqual([])
  const [part] = file!.scopes
  expect(part!.standing.size).toBe(body.entries.length)
  expect(new Set(part!.standing.values())).toEqual(new Set(['signed']))
  expect(body.entries.some((entry: object) => 'context' in entry)).toBe(true)
  // Each text is in the file once.
  expect(body.chain.entries.some((entry: object) => 'text' in entry)).toBe(false)
  const { flaws: of_receipt, checked: receipt } = checkReceipt((await receiptOf(scope, trace_id)).text)
  expect(forksIn([file!, receipt!]).concat(of_receipt)).toEqual([])
  const cut = { ...body, entries: body.entries.slice(1) }
  const changed = { ...body, entries: body.entries.map((entry: object) => ({ ...entry, at: '2026-01-01T00:00:00.000Z' })) }
  const foreign = { ...body, chain: { ...body.chain, segments: [] } }
  for (const other of [cut, changed]) expect(checkExport(JSON.stringify(other)).flaws.length).toBeGreaterThan(1)
  expect(checkExport(JSON.stringify(foreign)).flaws).toEqual([`${scope}: the file does not have its sum.`])
  expect(new Set(checkExport(JSON.stringify(foreign)).checked!.scopes[0]!.standing.values())).toEqual(new Set(['unsigned']))
})

test('a masked value is opened to an admin who has it: its salt proves it in the receipt, and no other value is found', async () => {
  const scope = freshScope()
  const event = { ...note(scope, 'fine'), login: { password: '0712' } }
  behaviours.set(scope, async (_, deps) => void (await deps.call('act', { text: '0712' })))
  await sendAndSettle(stubOf(scope), event)
  const { trace_id } = event.meta
  const path = `/v1/traces/${trace_id}/opening?scope=${encodeURIComponent(scope)}`
  const { status, body } = await call(path, { json: { value: '0712' } })
  expect(status).toBe(200)
  const { text, checked: file } = await checked(scope, trace_id)
  expect(text).toContain(body.mask)
  expect(text).not.toContain(body.salt)
  expect(provenAt(file, { value: '0712', salt: body.salt })).toContainEqual(
    expect.objectContaining({ kind: 'effect-started', field: 'input.text', whole: true, signed: true }),
  )
  expect(provenAt(file, { value: '0713', salt: body.salt })).toEqual([])
  expect(await call(path, { json: { value: '0713' } })).toMatchObject({ status: 404 })
  expect(await call(path, { json: { value: '0712' }, key: await keyFor(['operator'], [scope]) })).toMatchObject({ status: 403 })
  const other = await keyFor(['admin'], [freshScope()])
  expect(await call(path, { json: { value: '0712' }, key: other })).toMatchObject({ status: 403 })
})

test('a log that retention has cut keeps the hash of its newest deleted row, from which the chain continues', async () => {
  const { scope } = await withReflex()
  const stub = stubOf(scope)
  await accepted(scope)
  await until(async () => (await stub.state()).outbox.waiting === 0, 'D1 has everything')
  const newest = await inObject(stub, ({ storage }) => storage.sql.exec('SELECT max(seq), chain FROM log').one()['chain'])
  await age(stub, 8)
  await until(
    async () => (await inObject(stub, ({ storage }) => storage.sql.exec('SELECT 1 FROM log').toArray())).length === 0,
    'all is deleted',
  )
  const trace_id = await accepted(scope, 'later')
  const { text } = await checked(scope, trace_id)
  const [segment] = (JSON.parse(text) as { scopes: [{ segments: [{ before: string }] }] }).scopes[0].segments
  expect(segment.before).toBe(
    Buffer.from(newest as ArrayBuffer)
      .toString('hex')
      .slice(0, 64),
  )
})

test('the archive carries the chain: a trace that the scope has deleted is proved as before', async () => {
  const { scope } = await withReflex(replying('hello'), freshScope(ARCHIVED))
  const stub = stubOf(scope)
  const trace_id = await accepted(scope)
  const before = await checked(scope, trace_id)
  await until(async () => (await stub.state()).outbox.waiting === 0, 'D1 has everything')
  await age(stub, 8)
  await until(
    async () => (await inObject(stub, ({ storage }) => storage.sql.exec('SELECT 1 FROM log').toArray())).length === 0,
    'all is archived',
  )
  await accepted(scope, 'later')
  const after = await checked(scope, trace_id)
  const entriesIn = (text: string) => (JSON.parse(text) as { scopes: [{ entries: object[] }] }).scopes[0].entries
  expect(entriesIn(after.text)).toEqual(entriesIn(before.text))
  expect(after.decisions).toEqual(before.decisions)
  expect(after.missing).toEqual(before.missing)
  hooks.set(scope, {
    before(call, path) {
      if (call === 'get' && path.endsWith('.chain.json')) throw new Error('the bucket is away')
    },
  })
  // Entries without their links are not in the receipt, which says so.
  expect((await checked(scope, trace_id)).missing.join()).toMatch(/a part of its log could not be read/)
  hooks.delete(scope)
  // The file itself is proved without the server, and covers what was archived to its last entry.
  const { items } = (await call(`/v1/scopes/${encodeURIComponent(scope)}/archive`)).body
  const file = items.find(({ kind }: { kind: string }) => kind === 'log')
  const bytesOf = async (format: string) => {
    const { path } = file.files.find((one: { format: string }) => one.format === format)
    return new Uint8Array(await (await env.TEST_ARCHIVE.get(path))!.arrayBuffer())
  }
  const [jsonl, parquet, chain] = await Promise.all([bytesOf('jsonl'), bytesOf('parquet'), bytesOf('chain')])
  const given = { name: 'a file', jsonl, parquet, chain: new TextDecoder().decode(chain) }
  const { flaws, checked: proved } = checkArchive(given, (await call('/.well-known/reflex-receipts.json', { key: null })).body)
  expect(flaws).toEqual([])
  expect(proved).toMatchObject({ scope, first: file.first_seq, last: file.last_seq, unsigned: 0 })
})

test('the public keys need no key', async () => {
  const { status, body } = await call('/.well-known/reflex-receipts.json', { key: null })
  expect(status).toBe(200)
  expect(body.keys).toEqual([expect.objectContaining({ key: '7db3bd5fa78952e5', algorithm: 'Ed25519', until: null })])
  expect(JSON.stringify(body)).not.toContain('"d"')
})
