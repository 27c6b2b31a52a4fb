import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { LearnerStore } from '../../../src/features/learning/run/store.ts'
import { learnAgain } from '../../../src/features/learning/events/learning.ts'
import { call, keyFor, problem, scopePath } from '../../support/http.ts'
import { act, batches, decided, ended, histories, history, learn, learnerOf, readTicket, resolved, runOf } from '../../support/learning.ts'
import { scopeWith } from '../../support/scope-with-remote-tools.ts'
import { evict, freshScope, inObject, note, runAlarm, sendAndSettle, stubOf, until } from '../../support/scopes.ts'

describe('a run of learning', () => {
  test('registers what it learned in shadow mode, in the chain, with its evidence', async () => {
    const scope = freshScope()
    histories.set(scope, (after) => batches(decided(400), after))
    const started = await learn(scope)
    expect(started).toMatchObject({ status: 202, body: { status: 'running', already_running: false } })
    const run = await ended(scope, started.body.run_id)
    expect(run).toMatchObject({ status: 'done', scope, started_by: 'request', by: 'admin', found: 2, episodes: { read: 400, used: 400 } })
    const [cleanup, nothing] = run.candidates
    expect(cleanup).toMatchObject({ kind: 'reflex', version: '1', state: 'shadow', decision: expect.stringContaining('tool act') })
    expect(nothing).toMatchObject({ decision: 'nothing', state: 'shadow' })
    expect(cleanup.code).toContain('function reflex')
    expect(cleanup.evidence).toMatchObject({ train: { n: 134, of: 400, exceptions: 0 }, held_out: { covered: 40, agreed: 40 } })
    expect(cleanup.evidence.saves).toMatchObject({ model_calls: 40, tokens: 400 })
    expect(cleanup.examples[0]).toEqual({ seq: 0, trace_id: 't0', event_id: 'e0' })
    const evidence = (part: string) => call(`/v1/learn/runs/${run.run_id}/evidence?candidate=${cleanup.id}&part=${part}&limit=100`)
    const taught = (await evidence('train')).body
    expect(taught).toMatchObject({ items: { length: 100, 1: { seq: 3, trace_id: 't3', event_id: 'e3' } }, next_cursor: '100' })
    expect((await evidence('agreed')).body.items).toHaveLength(cleanup.evidence.held_out.agreed)
    expect((await evidence('differed')).body.items).toEqual([])
    const { settings } = (await call(scopePath(scope))).body
    expect(settings.reflexes.map(({ id }: { id: string }) => id)).toEqual(run.candidates.map(({ id }: { id: string }) => id))
    const { provenance, owner } = (await call(`/v1/reflexes/${cleanup.id}`)).body
    expect({ provenance, owner }).toMatchObject({ owner: `scope:${scope}`, provenance: { scope, run: run.run_id } })
  })

  test('continues where it was if its object dies, and registers nothing twice', async () => {
    const scope = freshScope()
    histories.set(scope, (after) => batches(decided(400), after, 40))
    const { run_id } = (await learn(scope)).body
    const run = await until(async () => {
      await evict(learnerOf(scope) as never)
      await runAlarm(learnerOf(scope))
      const found = await runOf(run_id)
      return found.status === 'running' ? null : found
    }, 'the run has ended')
    expect(run).toMatchObject({ status: 'done', found: 2, episodes: { read: 400 } })
  })

  test('registers a skill that turns repeat as a candidate of the agent, once, with the tests that it passed', async () => {
    const scope = await scopeWith({ http_tools: [readTicket] })
    const killed = await scopeWith({ http_tools: [readTicket] })
    const minedBy = async (of: string, episodes: ReturnType<typeof resolved>, kinds = ['skill']) => {
      histories.set(of, (after) => batches(episodes, after, 10))
      return (await learn(of, { kinds })).body.run_id
    }
    const run = await ended(scope, await minedBy(scope, resolved(40)))
    expect(run).toMatchObject({ status: 'done', kinds: ['skill'], found: 1, episodes: { read: 40, used: 40 }, rejected: [] })
    const [found] = run.candidates
    expect(found).toMatchObject({ kind: 'skill', version: '1.0.0', state: 'candidate', decision: 'http.tickets.read → act_global' })
    expect(found.mined).toMatchObject({ turns: 20, support: 0.5, success: 1, baseline_usd: 0.125, delta_cost: -1 })
    expect(found).toMatchObject({ manifest: { policy: { allow_roles: ['agent'] }, plan: { compensation: [{ tool: 'undo_global' }] } } })
    const { items } = (await call(`/v1/learn/runs/${run.run_id}/evidence?candidate=${found.id}&limit=100`)).body
    expect(items.map(({ event_id }: { event_id: string }) => event_id)).toEqual(Array.from({ length: 20 }, (_, index) => `e${2 * index}`))
    const { body: skill } = await call(`/v1/skills/${found.id}`)
    expect(skill).toMatchObject({ owner: `scope:${scope}`, scopes: [scope], state: 'candidate', provenance: { scope, run: run.run_id } })
    const { body: report } = await call(`/v1/skills/${found.id}@1.0.0/test`)
    expect(report).toMatchObject({ passed: true, by: 'learner', hash: skill.hash })
    // The test is repeated with the cases that were kept.
    expect((await call(`/v1/skills/${found.id}@1.0.0/test`, { json: {} })).body).toMatchObject({ passed: true, cases: 'declared' })

    const again = await ended(scope, await minedBy(scope, resolved(60)))
    expect(again).toMatchObject({ found: 0, rejected: [{ reason: `it is already registered as ${found.id}@1.0.0` }] })
    const changed = await ended(scope, await minedBy(scope, resolved(160, 'close')))
    expect(changed).toMatchObject({ found: 1, candidates: [{ id: found.id, version: '1.0.1', state: 'candidate' }] })

    const run_id = await minedBy(killed, resolved(40))
    const survived = await until(async () => {
      await evict(learnerOf(killed) as never)
      await runAlarm(learnerOf(killed))
      const one = await runOf(run_id)
      return one.status === 'running' ? null : one
    }, 'the run has ended')
    expect(survived).toMatchObject({ status: 'done', found: 1 })
    expect(survived.candidates[0].id).not.toBe(found.id)
    expect((await call(`/v1/skills/${survived.candidates[0].id}`)).body.versions).toHaveLength(1)
  })

  test('lets a mined skill act by itself with the mode auto, once later turns have proven it', async () => {
    const scope = await scopeWith({
      http_tools: [readTicket],
      learning: { mode: 'auto', min_agreement: { 'http.tickets.read': 0.95, default: 0.9 } },
    })
    const mine = async (turns: number) => {
      histories.set(scope, (after) => batches(resolved(turns), after))
      return ended(scope, (await learn(scope, { kinds: ['skill'] })).body.run_id)
    }
    const early = await mine(40)
    expect(early).toMatchObject({ found: 1, candidates: [{ state: 'candidate', mined: { proof: { turns: 10, agreed: 10 } } }] })
    const run = await mine(170)
    expect(run).toMatchObject({ found: 1, candidates: [{ state: 'active', mined: { turns: 85, proof: { turns: 65, agreed: 65 } } }] })
    expect((await call(`/v1/skills/${run.candidates[0].id}`)).body).toMatchObject({
      state: 'active',
      state_reason: expect.stringMatching(/65 of 65 later turns made the same calls, and each of its calls can be undone or repeated/),
    })
    expect(await mine(170)).toMatchObject({ found: 0 })
  })

  test.each([
    ['approve', 'active', 'approved'],
    ['reject', 'deprecated', 'rejected'],
  ])('asks a person about a mined skill with the mode propose: %s makes it %s', async (how, state, said) => {
    const scope = await scopeWith({ http_tools: [readTicket], learning: { mode: 'propose' } })
    const mine = async () => {
      histories.set(scope, (after) => batches(resolved(40), after))
      return ended(scope, (await learn(scope, { kinds: ['skill'] })).body.run_id)
    }
    const run = await mine()
    expect(run).toMatchObject({ found: 1, candidates: [{ state: 'candidate' }] })
    const { id } = run.candidates[0]
    const asked = async () => (await call(`/v1/approvals?scope=${encodeURIComponent(scope)}`)).body.items
    const [approval] = await until(async () => ((await asked()).length > 0 ? asked() : null), 'D1 has the question')
    const { hash } = (await call(`/v1/skills/${id}`)).body
    expect(approval).toMatchObject({ kind: 'activation', skill_id: id, version: '1.0.0', manifest_hash: hash, status: 'pending' })
    expect(approval).toMatchObject({
      inputs: { learn_run: run.run_id },
      why: expect.stringContaining('20 turns did http.tickets.read → act_global'),
    })
    await evict(stubOf(scope))
    expect(await call(`/v1/approvals/${approval.id}/${how}`, { json: { reason: 'I looked' } })).toMatchObject({ status: 200 })
    const decided = await until(async () => {
      const { body } = await call(`/v1/skills/${id}`)
      return body.state === 'candidate' ? null : body
    }, 'the scope has applied the decision')
    expect(decided).toMatchObject({ state, state_reason: expect.stringMatching(new RegExp(`${said} it in scope .*: I looked`)) })
    await until(
      () => inObject(stubOf(scope), ({ storage }) => storage.sql.exec('SELECT 1 FROM parked_runs').toArray().length === 0),
      'no row is left',
    )
    expect(await mine()).toMatchObject({ found: 0 })
    expect(await asked()).toHaveLength(1)
  })

  test('keeps what it found however long it is', async () => {
    const scope = freshScope()
    histories.set(scope, (after) => batches(decided(10), after))
    await ended(scope, (await learn(scope)).body.run_id)
    const kept = await inObject(learnerOf(scope) as never, ({ storage }) => {
      const store = new LearnerStore(storage)
      store.unit(() => store.putFinds(Array.from({ length: 60 }, () => ({ version: { code: 'x'.repeat(64_000) } }) as never)))
      return store.finds.length
    })
    expect(kept).toBe(60)
  })

  test('mines no skill from tools that the agent of the scope lacks', async () => {
    const scope = freshScope()
    histories.set(scope, (after) => batches(resolved(40), after))
    const run = await ended(scope, (await learn(scope, { kinds: ['skill'] })).body.run_id)
    expect(run).toMatchObject({ found: 0, rejected: [{ reason: expect.stringContaining('http.tickets.read') }] })
  })

  test('is the only one of its scope', async () => {
    const scope = freshScope()
    histories.set(scope, (after) => batches(decided(400), after))
    const first = (await learn(scope)).body
    expect((await learn(scope)).body).toEqual({ run_id: first.run_id, status: 'running', already_running: true })
    await ended(scope, first.run_id)
    expect((await learn(scope)).body.run_id).not.toBe(first.run_id)
  })

  test('reads nothing twice, and leaves what is being proved as it is', async () => {
    const scope = freshScope()
    histories.set(scope, (after) => batches(decided(400), after))
    const first = await ended(scope, (await learn(scope)).body.run_id)
    histories.set(scope, (after) => batches(decided(500), after))
    const second = await ended(scope, (await learn(scope)).body.run_id)
    expect(second).toMatchObject({ status: 'done', found: 0, episodes: { read: 100, used: 500 } })
    expect(second.rejected[0].reason).toContain('is being proved')
    const { settings } = (await call(scopePath(scope))).body
    expect(settings.reflexes).toEqual(first.candidates.map(({ id }: { id: string }) => ({ id })))
  })

  test.each([
    ['no event', 0, 'nothing to learn from'],
    ['one event', 1, 'at least 40 decisions are needed'],
    ['events of one class', -60, 'all decisions were the same'],
  ])('answers in words on a history of %s', async (_, count, words) => {
    const scope = freshScope()
    const episodes = count < 0 ? decided(-count * 3).filter((_, index) => index % 3 !== 0) : decided(count)
    histories.set(scope, (after) => batches(episodes, after))
    const run = await ended(scope, (await learn(scope)).body.run_id)
    expect(run).toMatchObject({ status: 'done', found: 0, answer: expect.stringContaining(words) })
  })

  test('answers in words if the teacher contradicts itself', async () => {
    const scope = freshScope()
    const coin = history(400, (index) => [{ type: 'test.note', text: 'the same' }, (index * 7919) % 5 < 2 ? act('act', { text: 'x' }) : []])
    histories.set(scope, (after) => batches(coin, after))
    const run = await ended(scope, (await learn(scope)).body.run_id)
    expect(run).toMatchObject({ status: 'done', found: 0, answer: expect.stringContaining('the older decisions predict') })
  })

  test('answers with what keeps most of the decisions from being learned', async () => {
    const scope = freshScope()
    const said = (index: number) => `they waited ${index} days, it seems`
    const worded = history(400, (index) => [
      { type: 'test.note', text: 'late' },
      act(index % 80 === 0 ? 'aside' : 'act', { text: said(index) }),
    ])
    histories.set(scope, (after) => batches(worded, after))
    const run = await ended(scope, (await learn(scope)).body.run_id)
    expect(run).toMatchObject({ status: 'done', found: 0, answer: expect.stringContaining('leave it out of the input of the tool') })
    expect(run.rejected[0]).toMatchObject({ what: 'tool act with text', reason: expect.stringContaining('395 decisions') })
  })

  test('never learns an act that the agent of the scope cannot do', async () => {
    const scope = freshScope()
    const foreign = decided(400).map((one) => ({ ...one, acts: one.acts.map((done) => ({ ...done, name: 'drop_tables' })) }))
    histories.set(scope, (after) => batches(foreign, after))
    const run = await ended(scope, (await learn(scope)).body.run_id)
    expect(run.candidates.map(({ decision }: { decision: string }) => decision)).toEqual(['nothing'])
    expect(run.rejected).toEqual([{ what: expect.stringContaining('drop_tables'), reason: expect.stringContaining('drop_tables') }])
  })

  test('starts by itself where the scope may learn and has decided enough', async () => {
    const [scope, idle] = [freshScope(), freshScope()]
    histories.set(scope, (after) => batches(decided(400), after))
    histories.set(idle, (after) => batches(decided(30), after))
    for (const one of [scope, idle]) {
      await stubOf(one).configure({ learning: { mode: 'auto' } }, 'ops')
      await sendAndSettle(stubOf(one), note(one, 'noise'))
    }
    const known = env.DB.prepare('SELECT count(*) AS n FROM scopes WHERE learns = 1 AND scope IN (?, ?)').bind(scope, idle)
    await until(async () => (await known.first<number>('n')) === 2, 'D1 has the scopes')
    const now = Date.now()
    // Scopes of other tests may learn, too.
    expect(await learnAgain(env, now)).toBeGreaterThanOrEqual(2)
    await learnAgain(env, now)
    // A clock that was ahead has noted the start.
    expect(await learnAgain(env, now - 86_400_000 / 2)).toBeGreaterThanOrEqual(2)
    const listed = async (of: string) => (await call(`/v1/learn/runs?scope=${encodeURIComponent(of)}`)).body.items
    const [run] = await until(async () => {
      await runAlarm(learnerOf(scope))
      const items = await listed(scope)
      return items[0]?.status === 'done' ? items : null
    }, 'the run has ended')
    expect(run).toMatchObject({ started_by: 'schedule', by: 'schedule', found: 2 })
    expect(await listed(scope)).toHaveLength(1)
    await runAlarm(learnerOf(idle))
    expect(await listed(idle)).toEqual([])
  })

  test('learns what people said about decisions that earlier runs have read', async () => {
    const scope = freshScope()
    histories.set(scope, (after) => batches(decided(200), after))
    await ended(scope, (await learn(scope)).body.run_id)
    const said = { id: 'e3', at: Date.now(), log_seq: 1000, by: 'person', acts: null, outcome: 'overruled' } as const
    histories.set(scope, async function* () {
      yield { episodes: [], corrections: [said, { ...said, id: 'never-read' }], skipped: [], watermark: 1000 }
    })
    const run = await ended(scope, (await learn(scope)).body.run_id)
    expect(run).toMatchObject({ episodes: { read: 0 } })
    const kept = await inObject(learnerOf(scope) as never, ({ storage }) =>
      storage.sql.exec<{ body: string }>(`SELECT body FROM episodes WHERE log_seq = 1000`).toArray(),
    )
    expect(kept.map(({ body }) => JSON.parse(body) as object)).toMatchObject([
      { id: 'e3', teacher: { by: 'person' }, outcome: 'overruled' },
    ])
  })

  test('forgets decisions that the scope no longer keeps, before it learns and between runs', async () => {
    const scope = freshScope()
    const old = (count: number) => decided(count).map((one, index) => (index < 100 ? { ...one, at: one.at - 2 * 86_400_000 } : one))
    histories.set(scope, (after) => batches(old(400), after))
    expect(await ended(scope, (await learn(scope)).body.run_id)).toMatchObject({ episodes: { read: 400, used: 400 } })
    const kept = () =>
      inObject(learnerOf(scope) as never, ({ storage }) => storage.sql.exec('SELECT count(*) AS n FROM episodes').one()['n'])
    await stubOf(scope).configure({ retention_days: 1 }, 'ops')
    expect(await kept()).toBe(400)
    expect(await runAlarm(learnerOf(scope))).toBe(true)
    expect(await kept()).toBe(300)
    await stubOf(scope).configure({ retention_days: 0.01 }, 'ops')
    histories.set(scope, (after) => batches(decided(500).slice(400), after))
    expect(await ended(scope, (await learn(scope)).body.run_id)).toMatchObject({ episodes: { read: 100, used: 100 } })
  })

  test('reads all again once the scope masks other fields, and keeps nothing of what it had read', async () => {
    const scope = freshScope()
    histories.set(scope, (after) => batches(decided(400), after))
    await ended(scope, (await learn(scope)).body.run_id)
    const masked = decided(400).map((one) => {
      const event = { ...one.saw.event, text: '[redacted]' }
      return { ...one, saw: { ...one.saw, event, recent_events: [event] } }
    })
    histories.set(scope, (after) => batches(masked, after))
    await stubOf(scope).configure({ redact: ['text'] }, 'ops')
    const texts = () =>
      inObject(learnerOf(scope) as never, ({ storage }) =>
        storage.sql.exec('SELECT count(*) AS n FROM episodes WHERE body LIKE ?', '%disk full%').one(),
      )
    expect(await texts()).toEqual({ n: 134 })
    await runAlarm(learnerOf(scope))
    expect(await texts()).toEqual({ n: 0 })
    expect(await ended(scope, (await learn(scope)).body.run_id)).toMatchObject({ episodes: { read: 400, used: 400 } })
    expect(await texts()).toEqual({ n: 0 })
  })

  test('shows the code that it wrote to keys that cover its scope alone', async () => {
    const scope = freshScope('team-a')
    histories.set(scope, (after) => batches(decided(400), after))
    const run = await ended(scope, (await learn(scope)).body.run_id)
    const [own, other] = [await keyFor(['operator'], ['team-a/*']), await keyFor(['operator'], ['team-b/*'])]
    const id = run.candidates[0]?.id
    const listed = async (key: string) => {
      const { items } = (await call('/v1/reflexes?limit=1000', { key })).body
      return items.some((item: { id: string }) => item.id === id)
    }
    expect([await listed(own), await listed(other)]).toEqual([true, false])
    expect(await call(`/v1/reflexes/${id}`, { key: own })).toMatchObject({ status: 200, body: { code: run.candidates[0]?.code } })
    for (const [path, json] of [[''], ['/metrics'], ['/run', {}], ['/copy', { id: 'mine' }], ['/state', { state: 'retired' }]] as const)
      expect(await call(`/v1/reflexes/${id}${path}`, { key: other, ...(json && { json }) })).toMatchObject(problem(404))
  })

  test('is for keys that cover its scope', async () => {
    const scope = freshScope('team-a')
    const [own, other] = [await keyFor(['operator'], ['team-a/*']), await keyFor(['operator'], ['team-b/*'])]
    expect(await call('/v1/learn', { key: other, json: { scope } })).toMatchObject(problem(403))
    const { run_id } = (await call('/v1/learn', { key: own, json: { scope } })).body
    expect(await call(`/v1/learn/runs/${run_id}`, { key: other })).toMatchObject(problem(404))
    expect((await call('/v1/learn/runs', { key: other })).body.items).toEqual([])
    const { items } = (await call(`/v1/learn/runs?scope=${encodeURIComponent(scope)}`, { key: own })).body
    expect(items.map((item: { run_id: string }) => item.run_id)).toEqual([run_id])
    expect(items[0]).not.toHaveProperty('candidates')
    expect(await stubOf(scope).metrics()).toMatchObject({ reflexes: [] })
  })

  test.each([
    {},
    { scope: 'a b' },
    { scope: 'x', window: 0 },
    { scope: 'x', kinds: [] },
    { scope: 'x', kinds: ['dream'] },
    { scope: 'x', more: 1 },
  ])('is not started by %j', async (json) => {
    expect(await call('/v1/learn', { json })).toMatchObject(problem(400))
  })
})
