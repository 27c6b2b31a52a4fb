import { generateText } from 'ai'
import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import type { Certificate } from '../../../../src/contract/certificate.ts'
import type { LogEntry } from '../../../../src/contract/log-entry.ts'
import type { SettingsPatch } from '../../../../src/contract/settings/settings.ts'
import { withDefaults, type Event } from '../../../../src/core/event.ts'
import { agentOwner } from '../../../../src/contract/reflex.ts'
import { noValues } from '../../../../src/evidence/novelty.ts'
import { changeOwner } from '../../../../src/features/market/store/ownership.ts'
import { agreementsNeeded } from '../../../../src/reflexes/promotion.ts'
import { certificateIn, certificatesOf, tellCertificates } from '../../../../src/store/artifacts/certificates.ts'
import { certificateOf, certify, provenCertificate } from '../../../support/certificates.ts'
import { call, keyFor } from '../../../support/http.ts'
import { calls, did, notes, promotionAsked, write } from '../../../support/reflex-chain.ts'
import {
  crash,
  entriesOf,
  evict,
  freshScope,
  hurry,
  inObject,
  note,
  send,
  sendAndSettle,
  stubOf,
  textOf,
  until,
} from '../../../support/scopes.ts'
import { behaviours, effectGates } from '../../../support/test-agents.ts'

const GREET = `return { action_type: 'reply', content: 'hi' }`
const NEEDED = agreementsNeeded(0.95)

const other = (scope: string): Event => withDefaults({ type: 'test.other' }, { now: Date.now(), source: 'test', scope }) as Event

/** The system prompt of each turn: an empty one calls no model. */
function teach(scope: string, system: () => string = () => '') {
  behaviours.set(scope, async ({ events }, deps) => {
    if (system() !== '') await generateText({ model: deps.model, instructions: system(), prompt: 'hello', abortSignal: deps.signal })
    for (const _ of events) deps.reply('hi')
    return { done: true }
  })
}

/** A scope whose agent wrote a reflex that greets, which was compared `count` times. */
async function learned(count: number, learning: SettingsPatch['learning'] = {}, system?: () => string, run?: string) {
  const scope = freshScope()
  const stub = stubOf(scope)
  const { id } = await write(GREET, { state: 'shadow', scope, ...(run !== undefined && { run }) })
  await stub.configure({ reflexes: [{ id }], learning }, 'ops')
  teach(scope, system)
  if (count > 0) await sendAndSettle(stub, ...notes(scope, count))
  return { id, scope, stub }
}

const countOf = (stub: ReturnType<typeof stubOf>, table: string) =>
  inObject(stub, ({ storage }) => Number(storage.sql.exec(`SELECT count(*) AS n FROM ${table}`).one()['n']))
const changesOf = async (stub: ReturnType<typeof stubOf>) =>
  (await entriesOf(stub, 'certificate-changed')).map(({ change, event_type }) => `${change} ${event_type ?? ''}`.trim())
const movesOf = async (stub: ReturnType<typeof stubOf>) => (await entriesOf(stub, 'reflex-moved')).map(({ from, to }) => `${from} ${to}`)
const learnedAgain = (scope: string) =>
  until(async () => {
    const { items } = (await call(`/v1/learn/runs?scope=${encodeURIComponent(scope)}`)).body
    return items.length === 1 && items[0].started_by === 'drift'
  }, 'the drift has started a run')
const passes = (entries: readonly Extract<LogEntry, { kind: 'reflex-passed' }>[]) => entries.map(({ reason }) => reason)

async function replays(scope: string, { trace_id }: { trace_id: string }) {
  const { body } = await call(`/v1/traces/${trace_id}/replay?scope=${encodeURIComponent(scope)}`, { json: { mode: 'pinned' } })
  return body as { equivalent: boolean; unknown: unknown[] }
}

describe('a version that was promoted by proof', () => {
  test('acts on the event type that it was proven on, and is compared on others', async () => {
    const { id, scope, stub } = await learned(NEEDED)
    expect(await changesOf(stub)).toEqual(['issued', 'proven test.note'])
    expect(await movesOf(stub)).toEqual(['shadow active'])
    expect(await sendAndSettle(stub, note(scope, 'a'))).toMatchObject([{ outcome: { by: 'reflex', reflex_id: id } }])
    expect(await sendAndSettle(stub, other(scope))).toMatchObject([{ outcome: { by: 'turn' } }])
    const [passed] = (await entriesOf(stub, 'reflex-passed')).slice(-1)
    expect(passed).toMatchObject({
      reason: 'uncertified',
      error: '0 of 0 decisions for any act on test.other agreed: at least 70 more must agree',
    })
    expect((await entriesOf(stub, 'reflex-fired')).at(-1)).toMatchObject({ state: 'shadow', event_ids: passed?.event_ids })
    expect((await entriesOf(stub, 'reflex-compared')).at(-1)).toMatchObject({ agreed: true, event_ids: passed?.event_ids })
  })

  test('shares its proof with the other reflexes that the scope has learned, and with no others', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const on = (letter: string) => `if (!context.event.text.startsWith('${letter}')) return null\n${GREET}`
    const written = async (letter: string, of: { run?: string; id?: string } = {}) =>
      (await write(on(letter), { state: 'shadow', scope, ...of })).id
    const [frequent, rare, own] = [await written('a', { run: 'run-1' }), await written('b', { run: 'run-2' }), await written('c')]
    const later = await written('d', { run: 'run-3', id: `${frequent}.g2` })
    const learning = { mode: 'auto' as const, min_agreement: 0.99 }
    await stub.configure({ reflexes: [frequent, rare, own, later].map((id) => ({ id })), learning }, 'ops')
    teach(scope)
    const starting = (letter: string, count: number) => Array.from({ length: count }, (_, index) => note(scope, `${letter} ${index}`))
    for (let sent = 0; sent < 300; sent += 60) await sendAndSettle(stub, ...starting('a', 60))
    await sendAndSettle(stub, ...starting('b', NEEDED), ...starting('c', NEEDED))
    expect(await movesOf(stub)).toEqual(['shadow active'])
    expect((await certificateOf(scope, { id: rare, version: 1 })).others).toMatchObject([{ risk: 'inside', all: { n: 300, k: 300 } }])
    const decided = await sendAndSettle(stub, note(scope, 'b'), note(scope, 'c'), note(scope, 'a'))
    expect(decided).toMatchObject([
      { outcome: { by: 'reflex', reflex_id: rare } },
      { outcome: { by: 'turn' } },
      { outcome: { by: 'turn' } },
    ])
    // It may have been learned from the decisions that the frequent one was compared with.
    await sendAndSettle(stub, ...starting('d', NEEDED))
    expect((await certificateOf(scope, { id: later, version: 1 })).others?.[0]?.all.n).toBeLessThan(300)
    // The frequent one acts from its own next comparison on.
    expect(await sendAndSettle(stub, note(scope, 'a'))).toMatchObject([{ outcome: { by: 'reflex', reflex_id: frequent } }])
  })

  test('counts no decision twice that several learned reflexes are compared with', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const written = async (name: string) => (await write(`const name = '${name}'\n${GREET}`, { state: 'shadow', scope, run: name })).id
    const reflexes = [{ id: await written('one') }, { id: await written('two') }]
    await stub.configure({ reflexes, learning: { mode: 'auto', min_agreement: 0.99 } }, 'ops')
    teach(scope)
    for (let sent = 0; sent < 200; sent += 50) await sendAndSettle(stub, ...notes(scope, 50))
    expect(await movesOf(stub)).toEqual([])
    const compared = await Promise.all(reflexes.map(({ id }) => certificateOf(scope, { id, version: 1 })))
    const all = compared.flatMap(({ strata }) => strata.filter(({ act }) => act === '*'))
    expect(all.reduce((sum, { n }) => sum + n, 0)).toBe(200)
    expect(compared.map(({ strata }) => strata.find(({ act }) => act === 'reply')?.n)).toEqual([200, 200])
  })

  test('is proven on another event type in time', async () => {
    const { scope, stub } = await learned(NEEDED)
    await sendAndSettle(stub, ...Array.from({ length: NEEDED }, () => other(scope)))
    expect(await changesOf(stub)).toEqual(['issued', 'proven test.note', 'proven test.other'])
    expect(await sendAndSettle(stub, other(scope))).toMatchObject([{ outcome: { by: 'reflex' } }])
    expect(await movesOf(stub)).toEqual(['shadow active'])
  })

  test.each([
    ['evicted', evict],
    ['killed', (_: unknown, scope: string) => crash(scope)],
  ])('keeps its proof although the scope was %s between two comparisons, and after the last', async (_, stop) => {
    const { scope, stub } = await learned(NEEDED - 1)
    await stop(stub, scope)
    await sendAndSettle(stubOf(scope), note(scope, 'one more'))
    expect(await changesOf(stubOf(scope))).toEqual(['issued', 'proven test.note'])
    await stop(stubOf(scope), scope)
    expect(await sendAndSettle(stubOf(scope), note(scope, 'a'))).toMatchObject([{ outcome: { by: 'reflex' } }])
    expect(await sendAndSettle(stubOf(scope), other(scope))).toMatchObject([{ outcome: { by: 'turn' } }])
  })

  test('is decided by the same in a replay, where it acted and where it did not', async () => {
    const { scope, stub } = await learned(NEEDED)
    await sendAndSettle(stub, note(scope, 'a'), other(scope))
    const accepted = await entriesOf(stub, 'event-accepted')
    for (const entry of accepted.slice(-3))
      expect(await replays(scope, entry)).toMatchObject({ equivalent: true, divergences: [], unknown: [] })
  })

  test('is replayed by the counts of the act that was proven', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const ignores = `if (context.event.text === 'z') return { action_type: 'ignore' }\n${GREET}`
    const { id } = await write(ignores, { state: 'shadow', scope })
    await stub.configure({ reflexes: [{ id }] }, 'ops')
    teach(scope)
    await sendAndSettle(stub, note(scope, 'z'), ...notes(scope, NEEDED))
    const proven = (await entriesOf(stub, 'certificate-changed')).find(({ change }) => change === 'proven')
    expect(await replays(scope, proven as never)).toMatchObject({ equivalent: true, divergences: [] })
  })

  test('leaves the events that its proof does not reach to the earlier version that a person activated', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const { id } = await write(GREET, { scope })
    await write(`const version = 2\n${GREET}`, { id, scope, state: 'shadow' })
    await stub.configure({ reflexes: [{ id }] }, 'ops')
    await sendAndSettle(stub, ...notes(scope, NEEDED))
    expect(await movesOf(stub)).toEqual(['shadow active'])
    // The chain is read again once D1 knows the promotion.
    await until(async () => (await call(`/v1/reflexes/${id}@2`)).body.by_proof === true, 'D1 knows')
    await stub.reflexesChanged([id])
    expect(await sendAndSettle(stub, note(scope, 'a'), other(scope))).toMatchObject([
      { outcome: { version: 2 } },
      { outcome: { version: 1 } },
    ])
    const [entry] = (await entriesOf(stub, 'event-accepted')).slice(-1)
    expect(await replays(scope, entry as never)).toMatchObject({ equivalent: true, unknown: [] })
  })

  test('is not proven by its own decisions, nor by those of another that acts by proof', async () => {
    const { id, scope, stub } = await learned(NEEDED)
    const { id: second } = await write(GREET, { state: 'shadow', scope })
    const { id: third } = await write(GREET, { state: 'shadow', scope })
    await stub.configure({ reflexes: [{ id }, { id: second }, { id: third }] }, 'ops')
    await sendAndSettle(stub, ...notes(scope, 5))
    // Each link after the one that acts is compared.
    expect((await entriesOf(stub, 'reflex-compared')).slice(-10)).toMatchObject(
      Array.from({ length: 10 }, (_, index) => ({ reflex_id: index % 2 === 0 ? second : third, agreed: true })),
    )
    expect(await changesOf(stub)).toEqual(['issued', 'proven test.note'])
  })

  test('of another scope acts here only once it is proven here', async () => {
    const { id, stub } = await learned(NEEDED)
    await hurry(stub)
    await until(async () => (await call(`/v1/reflexes/${id}`)).body.by_proof === true, 'D1 knows')
    expect(await call(`/v1/reflexes/${id}@1/sharing`, { json: { sharing: 'org' } })).toMatchObject({
      status: 200,
      body: { sharing: 'org' },
    })
    const scope = freshScope()
    await stubOf(scope).configure({ reflexes: [{ id, version: 1 }] }, 'ops')
    teach(scope)
    expect(await sendAndSettle(stubOf(scope), note(scope, 'a'))).toMatchObject([{ outcome: { by: 'turn' } }])
    expect(passes(await entriesOf(stubOf(scope), 'reflex-passed'))).toEqual(['uncertified'])
  })
})

describe('a queued action of a version that was promoted by proof', () => {
  type Stub = ReturnType<typeof stubOf>
  const withheld = (error: string) => ({ by: 'turn', ended: { status: 'failed', error: expect.stringContaining(error) } })
  test.each([
    [
      'the proof no longer lets it act',
      withheld('learning.mode is shadow'),
      (stub: Stub) => stub.configure({ learning: { mode: 'shadow' } }, 'ops'),
    ],
    ['the version has left the chain', withheld('has left the chain'), (stub: Stub) => stub.configure({ reflexes: null }, 'ops')],
    [
      'the version was put into shadow mode',
      withheld('no longer acts'),
      async (stub: Stub, id: string) => {
        // The promotion that the scope sends would replace a state that was set before it arrives.
        await until(async () => (await call(`/v1/reflexes/${id}`)).body.state === 'active', 'D1 knows the promotion')
        await call(`/v1/reflexes/${id}/state`, { json: { state: 'shadow' } })
        await stub.reflexesChanged([id])
      },
    ],
    ['nothing changes', { by: 'reflex', ended: { status: 'ok' } }, async () => {}],
  ])('is left to the slow path unless it began before, where %s', async (_, { by, ended }, change) => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const version = await write(calls('act_once'), { state: 'shadow', scope })
    await stub.configure({ reflexes: [{ id: version.id }], learning: { mode: 'auto' } }, 'ops')
    behaviours.set(scope, async ({ events }, deps) => {
      for (const event of events) await deps.call('act_once', { text: textOf(event) })
      return 'done'
    })
    await certify(scope, version, { risk: 'outside' })
    await sendAndSettle(stub, note(scope, 'compared'))
    expect(await movesOf(stub)).toEqual(['shadow active'])
    const gate = Promise.withResolvers<void>()
    effectGates.set(scope, gate.promise)
    const ids = await send(stub, note(scope, 'begun'), note(scope, 'queued'))
    await until(async () => did(scope).includes('begun'), 'the first effect has begun')
    await change(stub, version.id)
    effectGates.delete(scope)
    gate.resolve()
    const { records } = await stub.outcomes(ids, 15_000)
    expect(records).toMatchObject([{ outcome: { by: 'reflex' } }, { outcome: { by } }])
    expect(did(scope)).toEqual(['compared', 'begun', 'queued'])
    expect(await entriesOf(stub, 'action-ended')).toMatchObject([{ status: 'ok' }, ended])
  })
})

test('a person who puts a version into shadow mode wins over a promotion that D1 does not have yet', async () => {
  const { id, scope, stub } = await learned(0, { mode: 'auto' })
  for (const one of notes(scope, NEEDED - 1)) await sendAndSettle(stub, one)
  // The scope sends its promotion after the change of the person, of which it has not heard.
  await env.DB.prepare(
    `UPDATE artifact_versions SET state_reason = 'not yet', state_at = state_at + 5, revision = revision + 1000 WHERE id = ?`,
  )
    .bind(id)
    .run()
  await sendAndSettle(stub, note(scope, 'the last'))
  expect(await movesOf(stub)).toEqual(['shadow active'])
  const unsent = () => inObject(stub, ({ storage: { sql } }) => sql.exec(`SELECT 1 FROM outbox WHERE topic = 'reflex-moves'`).toArray())
  await until(async () => (await unsent()).length === 0, 'the promotion was sent')
  expect((await call(`/v1/reflexes/${id}`)).body).toMatchObject({ state: 'shadow', state_reason: 'not yet' })
  await stub.reflexesChanged([id])
  expect(await sendAndSettle(stub, note(scope, 'later'))).toMatchObject([{ outcome: { by: 'turn' } }])
})

describe('a version that a person activated', () => {
  test('acts everywhere, whatever its certificate says', async () => {
    const { id, scope, stub } = await learned(3)
    expect(await call(`/v1/reflexes/${id}/state`, { json: { state: 'active', force: true } })).toMatchObject({
      status: 200,
      body: { by_proof: false },
    })
    await stub.reflexesChanged([id])
    expect(await sendAndSettle(stub, note(scope, 'a'), other(scope))).toMatchObject([
      { outcome: { by: 'reflex' } },
      { outcome: { by: 'reflex' } },
    ])
  })
})

test.each(['off', 'shadow'] as const)('the model calls of turns are looked at where something is learned: %s', async (mode) => {
  const scope = freshScope()
  teach(scope, () => 'Greet everybody.')
  await stubOf(scope).configure({ learning: { mode } }, 'ops')
  await sendAndSettle(stubOf(scope), note(scope, 'a'))
  const kept = await inObject(stubOf(scope), ({ storage: { sql } }) => sql.exec(`SELECT 1 FROM state WHERE key = 'teacher'`).toArray())
  expect(kept).toHaveLength(mode === 'off' ? 0 : 1)
})

describe('a certificate', () => {
  test('lapses when the instructions change, which the log says, and is earned again', async () => {
    let system = 'Greet everybody.\nBe brief.'
    const { scope, stub } = await learned(0, { mode: 'auto' }, () => system)
    for (const one of notes(scope, NEEDED)) await sendAndSettle(stub, one)
    expect(await sendAndSettle(stub, note(scope, 'a'))).toMatchObject([{ outcome: { by: 'reflex' } }])
    system = 'Greet nobody.\nBe brief.'
    await sendAndSettle(stub, other(scope))
    expect(await changesOf(stub)).toEqual(['issued', 'proven test.note', 'lapsed', 'issued'])
    expect((await entriesOf(stub, 'certificate-changed')).find(({ change }) => change === 'lapsed')).toMatchObject({
      reason: 'the instructions of the slow path changed',
    })
    expect(await entriesOf(stub, 'teacher-changed')).toMatchObject([{}, { reason: 'the instructions of the slow path changed' }])
    expect(await sendAndSettle(stub, note(scope, 'b'))).toMatchObject([{ outcome: { by: 'turn' } }])
    for (const one of notes(scope, NEEDED)) await sendAndSettle(stub, one)
    expect((await changesOf(stub)).at(-1)).toBe('proven test.note')
    expect(await sendAndSettle(stub, note(scope, 'c'))).toMatchObject([{ outcome: { by: 'reflex' } }])
  })

  test('holds while the system prompt tells the time and quotes the event', async () => {
    let asked = 0
    const system = () =>
      `Greet everybody.\nIt is ${new Date(Date.UTC(2026, 0, (asked += 1), asked % 24)).toISOString()}, a Monday.\nRow ${asked}`
    const { scope, stub } = await learned(0, { mode: 'auto' }, system)
    for (const one of notes(scope, NEEDED)) await sendAndSettle(stub, one)
    expect(await changesOf(stub)).toEqual(['issued', 'proven test.note'])
  })

  test('is read for one scope and version, whoever else has one of the reflex', async () => {
    const { id, scope, stub } = await learned(NEEDED)
    await hurry(stub)
    const [row] = await until(async () => (await certificatesOf(env.DB, id)).filter(({ certificate }) => certificate.n > 0), 'D1 knows')
    const elsewhere = freshScope()
    await tellCertificates(env.DB, elsewhere, [{ ...(row?.certificate as Certificate), n: 1 }], Date.now() + 1000)
    expect(await certificateIn(env.DB, scope, { id, version: 1 })).toEqual(row?.certificate)
    expect(await certificateIn(env.DB, elsewhere, { id, version: 1 })).toMatchObject({ n: 1 })
    expect(await certificateIn(env.DB, scope, { id, version: 2 })).toBeUndefined()
  })

  test.each([
    ['begins with what the same slow path let foresee', {}, ['issued']],
    ['does not begin with what another slow path let foresee', { model: 'another one' }, []],
  ])('%s', async (_, other, changes) => {
    const scope = freshScope()
    const { teacher } = provenCertificate(await write(GREET))
    const place = { seq: 1, at: Date.now() }
    const act = { event_type: 'test.note', act: 'reply', n: 20, k: 20, from: place, to: place }
    const foreseen = { teacher: { ...teacher, ...other }, acts: [act], shapes: { taught: {}, rare: 0, values: noValues() } }
    const code = `function reflex(context) { ${GREET} }`
    const learned = { run_id: 'run-1', name: 'greets', code, description: 'It greets.', needs: null, replaces: [], foreseen }
    expect(await stubOf(scope).adopt(learned)).toMatchObject({ ok: true })
    expect(await changesOf(stubOf(scope))).toEqual(changes)
  })

  test('is kept for the newest 1000 versions of a scope', async () => {
    const { id, scope, stub } = await learned(0)
    const old = JSON.stringify(provenCertificate(await write(GREET, { state: 'shadow', scope })))
    const insert = `WITH RECURSIVE old(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM old WHERE n < 1000)
      INSERT INTO certificates (reflex_id, version, certificate, issued_at) SELECT 'old-' || n, 1, ?, n FROM old`
    await inObject(stub, ({ storage: { sql } }) => void sql.exec(insert, old))
    await evict(stub)
    await sendAndSettle(stub, note(scope, 'a'))
    const kept = await inObject(stub, ({ storage: { sql } }) =>
      sql
        .exec('SELECT reflex_id FROM certificates ORDER BY issued_at')
        .toArray()
        .map(({ reflex_id }) => reflex_id),
    )
    expect([kept.length, kept.at(0), kept.at(-1)]).toEqual([1000, 'old-2', id])
  })

  test('is replicated to D1, and shown with the reflex and with the scope', async () => {
    const { id, scope, stub } = await learned(NEEDED)
    await hurry(stub)
    const [row] = await until(async () => (await certificatesOf(env.DB, id)).filter(({ certificate }) => certificate.n > 0), 'D1 knows')
    expect(row).toMatchObject({ scope, version: 1, certificate: { n: NEEDED, k: NEEDED, bound: 0.95 } })
    const why = expect.arrayContaining([expect.stringContaining(`For reply on test.note: ${NEEDED} of ${NEEDED} decisions`)])
    const shown = { certificate: { strata: [{ event_type: 'test.note', state: 'proven' }] }, why }
    expect((await call(`/v1/reflexes/${id}`)).body.certificates).toMatchObject([{ scope, version: 1, ...shown }])
    expect((await call(`/v1/scopes/${encodeURIComponent(scope)}/metrics`)).body.reflexes).toMatchObject([{ reflex_id: id, proof: shown }])
    const foreign = await keyFor(['viewer'], ['elsewhere/*'])
    expect((await call(`/v1/reflexes/${id}`, { key: foreign })).status).toBe(404)
    await call(`/v1/reflexes/${id}@1/sharing`, { json: { sharing: 'org' } })
    expect((await call(`/v1/reflexes/${id}`, { key: foreign })).body.certificates).toEqual([])
  })
})

describe('the setting learning.mode', () => {
  test('shadow: a proven version never acts, nor does one that acted before', async () => {
    const { scope, stub } = await learned(NEEDED, { mode: 'shadow' })
    expect(await changesOf(stub)).toEqual(['issued', 'proven test.note'])
    expect(await movesOf(stub)).toEqual([])
    await stub.configure({ learning: { mode: 'auto' } }, 'ops')
    await sendAndSettle(stub, note(scope, 'a'))
    expect(await movesOf(stub)).toEqual(['shadow active'])
    await stub.configure({ learning: { mode: 'shadow' } }, 'ops')
    expect(await sendAndSettle(stub, note(scope, 'b'))).toMatchObject([{ outcome: { by: 'turn' } }])
  })

  test('off: what a run of learning wrote is proven and never acts, nor does one that acted before', async () => {
    const { scope, stub } = await learned(NEEDED, {}, undefined, 'run-1')
    expect(await changesOf(stub)).toEqual(['issued', 'proven test.note'])
    expect(await sendAndSettle(stub, note(scope, 'a'))).toMatchObject([{ outcome: { by: 'turn' } }])
    expect(await movesOf(stub)).toEqual([])
    await stub.configure({ learning: { mode: 'auto' } }, 'ops')
    await sendAndSettle(stub, note(scope, 'b'))
    expect(await movesOf(stub)).toEqual(['shadow active'])
    await stub.configure({ learning: { mode: 'off' } }, 'ops')
    expect(await sendAndSettle(stub, note(scope, 'c'))).toMatchObject([{ outcome: { by: 'turn' } }])
  })

  const decideOn = (id: string, how: 'approve' | 'reject') => call(`/v1/approvals/${id}/${how}`, { json: { reason: 'I looked' } })

  test.each([
    ['', async () => {}],
    [', also after an eviction', evict],
  ])('propose: a proven version acts once a person approved it, with its evidence before them%s', async (_, meanwhile) => {
    const { id, scope, stub } = await learned(NEEDED, { mode: 'propose' })
    await sendAndSettle(stub, note(scope, 'waits'))
    expect(await movesOf(stub)).toEqual([])
    const approval = await promotionAsked(scope)
    expect(approval).toMatchObject({
      kind: 'promotion',
      skill_id: id,
      version: '1',
      status: 'pending',
      inputs: { event_type: 'test.note', risk: 'inside', act: 'reply' },
      why: expect.stringContaining(`For reply on test.note: ${NEEDED} of ${NEEDED} decisions`),
    })
    await meanwhile(stub)
    expect(await decideOn(approval?.id ?? '', 'approve')).toMatchObject({ status: 200 })
    await until(async () => (await movesOf(stubOf(scope))).length > 0, 'the scope knows')
    expect(await changesOf(stubOf(scope))).toEqual(['issued', 'proven test.note', 'asked test.note', 'allowed test.note'])
    expect(await sendAndSettle(stubOf(scope), note(scope, 'a'))).toMatchObject([{ outcome: { by: 'reflex' } }])
    await sendAndSettle(stubOf(scope), ...Array.from({ length: NEEDED }, () => other(scope)))
    expect((await changesOf(stubOf(scope))).slice(-2)).toEqual(['proven test.other', 'asked test.other'])
    expect(await sendAndSettle(stubOf(scope), other(scope))).toMatchObject([{ outcome: { by: 'turn' } }])
  })

  test('propose: a version that a person rejected stays in shadow mode for good', async () => {
    const { scope, stub } = await learned(NEEDED, { mode: 'propose' })
    const approval = await promotionAsked(scope)
    await decideOn(approval?.id ?? '', 'reject')
    const [moved] = await until(async () => {
      const moves = await entriesOf(stub, 'reflex-moved')
      return moves.length > 0 ? moves : null
    }, 'the scope knows')
    expect(moved).toMatchObject({ from: 'shadow', to: 'shadow', reason: expect.stringContaining('rejected its action reply on test.note') })
    await stub.configure({ learning: { mode: 'auto' } }, 'ops')
    await sendAndSettle(stub, ...notes(scope, NEEDED))
    expect(await movesOf(stub)).toEqual(['shadow shadow'])
  })

  test('propose: a rejection by the scope of an agent that has sold the version moves it nowhere', async () => {
    const { id, scope, stub } = await learned(NEEDED, { mode: 'propose' })
    const approval = await promotionAsked(scope)
    const seller = { owner: `scope:${scope}`, owner_id: agentOwner(scope), scopes: [scope] }
    const buyer = { owner: 'buyer', owner_id: 'key-of-buyer', scopes: ['*'] }
    await changeOwner(env.DB, { kind: 'reflex', id }, { deal_id: crypto.randomUUID(), seller, buyer, now: Date.now() })
    await stub.reflexesChanged([id])
    expect((await entriesOf(stub, 'reflex-fired')).length).toBe(NEEDED)
    await decideOn(approval?.id ?? '', 'reject')
    await until(async () => (await changesOf(stub)).at(-1) === 'rejected test.note', 'the scope knows')
    expect(await movesOf(stub)).toEqual([])
  })

  test('propose: a rejection outlives the certificate, which lapses when the slow path changes', async () => {
    let system = 'Greet everybody.'
    const { scope, stub } = await learned(0, { mode: 'propose' }, () => system)
    for (const one of notes(scope, NEEDED)) await sendAndSettle(stub, one)
    const approval = await promotionAsked(scope)
    await decideOn(approval?.id ?? '', 'reject')
    await until(async () => (await movesOf(stub)).length > 0, 'the scope knows')
    system = 'Greet nobody.'
    await sendAndSettle(stub, note(scope, 'a'))
    await sendAndSettle(stub, note(scope, 'b'))
    expect((await changesOf(stub)).slice(-2)).toEqual(['lapsed', 'issued'])
    const last = (await entriesOf(stub, 'certificate-changed')).at(-1)
    expect(last?.certificate.strata).toMatchObject([{ event_type: 'test.note', state: 'refuted', person: expect.any(String) }])
  })

  test('auto: a person is asked where the action can be neither undone nor repeated', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const { id } = await write(calls('act'), { state: 'shadow', scope })
    await stub.configure({ reflexes: [{ id }], learning: { mode: 'auto' } }, 'ops')
    behaviours.set(scope, async ({ events }, deps) => {
      for (const event of events) await deps.call('act', { text: (event as unknown as { text: string }).text })
      return 'done'
    })
    await sendAndSettle(stub, ...notes(scope, agreementsNeeded(0.95)))
    expect(await changesOf(stub)).toEqual(['issued', 'proven test.note', 'asked test.note'])
    expect(await movesOf(stub)).toEqual([])
    const approval = await promotionAsked(scope)
    await decideOn(approval?.id ?? '', 'approve')
    await until(async () => (await movesOf(stub)).length > 0, 'the scope knows')
    expect(await sendAndSettle(stub, note(scope, 'a'))).toMatchObject([{ outcome: { by: 'reflex' } }])
  })

  describe('a proven version that waits for a person', () => {
    /** The slow path says this from now on. */
    const says = (scope: string, content: string) =>
      behaviours.set(scope, async ({ events }, deps) => {
        for (const _ of events) deps.reply(content)
        return { done: true }
      })
    const approvalsOf = async (scope: string) =>
      (await call(`/v1/approvals?scope=${encodeURIComponent(scope)}`)).body.items as {
        id: string
        status: string
        why: string
        reason: string
      }[]

    test('is still compared: the first disagreement withdraws the question, whose approval is refused', async () => {
      const { id, scope, stub } = await learned(NEEDED, { mode: 'propose' })
      const asked = await promotionAsked(scope)
      says(scope, 'go away')
      await sendAndSettle(stub, note(scope, 'b'))
      // D1 may still have the old question: the scope says what changed.
      const refused = await decideOn(asked?.id ?? '', 'approve')
      expect(refused).toMatchObject({
        status: 409,
        body: { detail: expect.stringMatching(/no longer asks|1 of 1 decisions since its proof/) },
      })
      await hurry(stub)
      await until(async () => (await approvalsOf(scope))[0]?.status === 'withdrawn', 'D1 knows')
      expect((await approvalsOf(scope))[0]?.reason).toContain('1 of 1 decisions since its proof disagreed')
      expect(await decideOn(asked?.id ?? '', 'approve')).toMatchObject({
        status: 409,
        body: { detail: expect.stringContaining('It was withdrawn') },
      })
      expect((await changesOf(stub)).slice(-2)).toEqual(['asked test.note', 'withdrawn test.note'])
      const proof = (await certificatesOf(env.DB, id))[0]?.certificate
      expect(proof?.strata).toMatchObject([{ state: 'proven', audits: { audits: 1, disagreed: 1 } }])
      expect(await movesOf(stub)).toEqual([])
    })

    test('is asked about again with the newest evidence, once enough decisions agreed again', async () => {
      const { scope, stub } = await learned(NEEDED, { mode: 'propose' })
      says(scope, 'go away')
      await sendAndSettle(stub, note(scope, 'b'))
      // It is asked about that once more.
      await until(async () => (await entriesOf(stub, 'dry-turn-ended')).length === 1, 'the disagreement stands')
      says(scope, 'hi')
      await sendAndSettle(stub, ...notes(scope, 20))
      expect((await changesOf(stub)).slice(-3)).toEqual(['asked test.note', 'withdrawn test.note', 'asked test.note'])
      await hurry(stub)
      const pending = await until(
        async () => (await approvalsOf(scope)).find(({ status }) => status === 'pending'),
        'D1 has the new question',
      )
      expect(pending?.why).toContain('20 of 21 decisions since agreed')
      expect(await decideOn(pending?.id ?? '', 'approve')).toMatchObject({ status: 200 })
      await until(async () => (await movesOf(stub)).length > 0, 'the scope knows')
      expect(await sendAndSettle(stub, note(scope, 'a'))).toMatchObject([{ outcome: { by: 'reflex' } }])
    })

    test('never acts once most decisions disagree, and is refuted, not shown as proven', async () => {
      const { id, scope, stub } = await learned(NEEDED, { mode: 'propose' })
      says(scope, 'go away')
      for (let index = 0; index < 12; index += 1) await sendAndSettle(stub, note(scope, `later ${index}`))
      expect((await changesOf(stub)).slice(-2)).toEqual(['drifted test.note', 'refuted test.note'])
      await learnedAgain(scope)
      expect((await entriesOf(stub, 'reflex-moved')).at(-1)).toMatchObject({
        to: 'shadow',
        reason: expect.stringContaining('0 of 2 compared fires'),
      })
      await hurry(stub)
      await until(async () => (await certificatesOf(env.DB, id))[0]?.certificate.strata[0]?.state === 'refuted', 'D1 knows')
      const { certificates } = (await call(`/v1/reflexes/${id}`)).body
      expect(certificates[0].why[0]).toBe('For reply on test.note it stays in shadow mode: only 0 of 2 decisions agreed.')
    })
  })

  test('auto: a version that acts by proof and is refuted after an alarm is active no longer', async () => {
    const { id, scope, stub } = await learned(NEEDED, { mode: 'auto', audit_share: 1 })
    behaviours.set(scope, async ({ events }, deps) => {
      for (const _ of events) deps.reply('go away')
      return { done: true }
    })
    expect(await sendAndSettle(stub, note(scope, 'a'))).toMatchObject([{ outcome: { by: 'reflex' } }])
    await until(async () => (await entriesOf(stub, 'reflex-audited')).length === 1, 'the audit disagreed')
    for (let index = 0; index < 8; index += 1)
      expect(await sendAndSettle(stub, note(scope, `later ${index}`))).toMatchObject([{ outcome: { by: 'turn' } }])
    expect((await changesOf(stub)).slice(-2)).toEqual(['drifted test.note', 'refuted test.note'])
    expect(await movesOf(stub)).toEqual(['shadow active', 'active shadow'])
    await learnedAgain(scope)
    await hurry(stub)
    await until(async () => (await call(`/v1/reflexes/${id}`)).body.state === 'shadow', 'D1 knows')
  })

  test('an approval of a proof that has ended since has no effect', async () => {
    let system = 'Greet everybody.'
    const { scope, stub } = await learned(0, { mode: 'propose' }, () => system)
    for (const one of notes(scope, NEEDED)) await sendAndSettle(stub, one)
    const approval = await promotionAsked(scope)
    system = 'Greet nobody.'
    await sendAndSettle(stub, note(scope, 'a'))
    expect((await changesOf(stub)).slice(-2)).toEqual(['lapsed', 'issued'])
    await decideOn(approval?.id ?? '', 'approve')
    await until(async () => (await countOf(stub, 'parked_runs')) === 0, 'the scope knows')
    expect(await movesOf(stub)).toEqual([])
  })

  test.each(['approve', 'reject'] as const)('a decision on a proof that has expired since has no effect: %s', async (how) => {
    const { scope, stub } = await learned(NEEDED, { mode: 'propose' })
    const approval = await promotionAsked(scope)
    const expire = `UPDATE certificates SET certificate = json_set(certificate, '$.expires_at', 1)`
    await inObject(stub, ({ storage: { sql } }) => void sql.exec(expire))
    await evict(stub)
    expect(await decideOn(approval?.id ?? '', how)).toMatchObject({ status: 200 })
    await until(async () => (await countOf(stub, 'parked_runs')) === 0, 'the scope knows')
    expect(await changesOf(stub)).toEqual(['issued', 'proven test.note', 'asked test.note', 'lapsed'])
    expect(await movesOf(stub)).toEqual([])
  })

  test('an approval of other evidence than the scope has now does not let a version act', async () => {
    const { id, scope, stub } = await learned(NEEDED, { mode: 'propose' })
    const approval = await promotionAsked(scope)
    const { strata, ...others } = await certificateOf(scope, { id, version: 1 })
    const later = { ...others, strata: strata.map((one) => ({ ...one, to: { ...one.to, seq: one.to.seq + 1 } })) }
    await inObject(stub, ({ storage: { sql } }) => void sql.exec('UPDATE certificates SET certificate = ?', JSON.stringify(later)))
    await evict(stub)
    // D1 took the decision while the scope could not be asked.
    await stub.approvalDecided(approval?.id ?? '', { status: 'approved', by: 'ops', reason: null, traceparent: null })
    expect(await countOf(stub, 'parked_runs')).toBe(0)
    expect(await changesOf(stub)).toEqual(['issued', 'proven test.note', 'asked test.note'])
    expect(await movesOf(stub)).toEqual([])
  })

  test('propose: a question is replaced once other decisions prove the action again', async () => {
    const { scope, stub } = await learned(NEEDED, { mode: 'propose' })
    await stub.configure({ learning: { min_support: NEEDED + 1 } }, 'ops')
    await sendAndSettle(stub, note(scope, 'one more'))
    const again = ['bounds_changed', 'proven test.note', 'withdrawn test.note', 'asked test.note']
    expect(await changesOf(stub)).toEqual(['issued', 'proven test.note', 'asked test.note', ...again])
    expect(await countOf(stub, 'parked_runs')).toBe(1)
  })

  test('auto: a proven version of whose runs too many failed does not act', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const { id } = await write(`if (context.event.text === 'odd') throw new Error('it broke')\n${GREET}`, { state: 'shadow', scope })
    await stub.configure({ reflexes: [{ id }], learning: { mode: 'auto' } }, 'ops')
    teach(scope)
    await sendAndSettle(stub, note(scope, 'odd'), ...notes(scope, NEEDED))
    expect(await changesOf(stub)).toEqual(['issued', 'proven test.note'])
    expect(await movesOf(stub)).toEqual([])
    await sendAndSettle(stub, ...notes(scope, 100 - NEEDED))
    expect(await movesOf(stub)).toEqual(['shadow active'])
  })
})
