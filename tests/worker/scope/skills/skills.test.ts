import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import type { Artifact, ArtifactChange } from '../../../../src/contract/artifact.ts'
import { ArtifactCopy } from '../../../../src/engine/replication/artifact-copy.ts'
import type { Unit } from '../../../../src/kernel/unit.ts'
import { openDatabase } from '../../../../src/engine/storage/scope-tables.ts'
import { did, write } from '../../../support/reflex-chain.ts'
import { call, scopePath } from '../../../support/http.ts'
import { ask as askMcp } from '../../../support/mcp.ts'
import { propose, skill, twoSteps } from '../../../support/two-step-skill.ts'
import {
  age,
  crash,
  entriesOf,
  evict,
  freshScope,
  hurry,
  inObject,
  logOf,
  note,
  runAlarm,
  send,
  sendAndSettle,
  stubOf,
  until,
} from '../../../support/scopes.ts'
import { ask, behaviours, effectGates, effects } from '../../../support/test-agents.ts'

describe('a proposal over the API', () => {
  test('that the gate allows runs step by step, and returns its result', async () => {
    const scope = freshScope()
    const id = await skill()
    expect(await propose(scope, id)).toMatchObject({
      status: 'ok',
      outputs: { done: 'x' },
      decision: {
        verdict: 'allow',
        score: 2,
        tau: 2,
        stages: [{ stage: 'compat', verdict: 'passed' }, {}, {}, { stage: 'policy', verdict: 'passed' }],
      },
      steps: [
        { index: 0, tool: 'act', status: 'ok' },
        { index: 1, tool: 'act', status: 'ok' },
      ],
      idempotent: false,
    })
    expect(did(scope)).toEqual(['first x', 'second x'])
    expect((await logOf(stubOf(scope))).map(({ kind }) => kind)).toEqual([
      'call-received',
      'blackboard-seeded',
      'skill-decided',
      'skill-started',
      'effect-started',
      'effect-ended',
      'skill-step-ended',
      'effect-started',
      'effect-ended',
      'skill-step-ended',
      'skill-applied',
    ])
  })

  test('has a trace of its own, or that of its traceparent, with the call as its root', async () => {
    const scope = freshScope()
    const id = await skill()
    const [trace_id, parent_id] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7']
    const first = await propose(scope, id)
    const second = await propose(scope, id)
    expect(new Set(['0'.repeat(32), trace_id, first.trace_id, second.trace_id]).size).toBe(4)
    const headers = { traceparent: `00-${trace_id}-${parent_id}-01` }
    const json = { skill_id: id, inputs: { what: 'x' }, why: 'do it twice' }
    expect((await call(scopePath(scope, '/skills/propose'), { json, headers })).body).toMatchObject({ trace_id })
    const [root, ...below] = (await logOf(stubOf(scope))).filter((entry) => entry.trace_id === trace_id)
    expect(root).toMatchObject({ kind: 'call-received', call: 'skill', name: id, by: 'admin', parent_id })
    expect(below.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['skill-decided', 'skill-applied', 'effect-ended']))
    expect(below.filter((entry) => entry.parent_id === root?.span_id).length).toBeGreaterThan(0)
  })

  test('whose second step has larger arguments than can be journalled runs the first once, undoes it and says why', async () => {
    const scope = freshScope()
    const steps = [
      { tool: 'act', args: { text: 'first' } },
      { tool: 'act', args: { text: '{{what}}{{what}}{{what}}' } },
    ]
    const compensation = [{ when: 'partial_failure', tool: 'act', args: { text: 'undo first' }, step: 0 }]
    const id = await skill({ plan: { ...twoSteps('x').plan, steps, compensation, idempotence_key: 'twice', result_map: { done: 'x' } } })
    expect(await propose(scope, id, { inputs: { what: '漢'.repeat(30_000) } })).toMatchObject({
      status: 'partial_failure',
      reason: expect.stringContaining('270011 bytes'),
      steps: [{ status: 'ok' }, { status: 'failed' }],
      compensation: [{ status: 'ok' }],
    })
    expect(did(scope)).toEqual(['first', 'undo first'])
  })

  test.each([
    ['misses a slot', {}, { inputs: {} }, { status: 'clarify', questions: [{ slot: 'what' }] }],
    [
      'is not relevant',
      {},
      { why: 'something else' },
      { status: 'refused', decision: { verdict: 'refused', stages: [{}, {}, { stage: 'score', verdict: 'failed' }, {}] } },
    ],
    [
      'is of a role that nobody has',
      { policy: { allow_roles: ['ReleaseManager'] } },
      {},
      { status: 'refused', decision: { verdict: 'deny', to_pass: [expect.stringContaining('ReleaseManager')] } },
    ],
    [
      'is for another place',
      { compat: { env: ['production'] } },
      {},
      { status: 'refused', decision: { stages: [{ stage: 'compat', verdict: 'failed' }, {}, {}, {}] } },
    ],
  ])('that %s runs nothing, and says what would have to change', async (_, changes, more, expected) => {
    const scope = freshScope()
    expect(await propose(scope, await skill(changes), more)).toMatchObject(expected)
    expect(did(scope)).toEqual([])
  })

  test('leaves no value of a secret input in the log, whose it is to be shown', async () => {
    const scope = freshScope()
    // Before the skill makes it a secret: later it would be refused.
    await call(scopePath(scope), { method: 'PATCH', json: { blackboard: { ctx: { hidden: 'hunter2-hunter2' } } } })
    const signature = {
      inputs: [{ name: 'what', type: 'string', required: true, secret: true }],
      blackboard_bindings: { inputs: { what: 'ctx.hidden' } },
    }
    const plan = { ...twoSteps('x').plan, result_map: {} }
    const id = await skill({ signature, plan })
    expect(await propose(scope, id, { inputs: {} })).toMatchObject({ status: 'ok' })
    expect(did(scope)).toEqual(['first hunter2-hunter2', 'second hunter2-hunter2'])
    const told = await logOf(stubOf(scope))
    expect(told.filter((entry) => JSON.stringify(entry).includes('hunter2'))).toEqual([])
  })

  test('of a candidate waits for its promotion; of an unknown skill is refused', async () => {
    const scope = freshScope()
    expect(await propose(scope, await skill({}, 'candidate'))).toMatchObject({
      status: 'refused',
      decision: { verdict: 'needs_promotion' },
    })
    expect(await propose(scope, 'no.such.skill')).toMatchObject({ status: 'refused' })
    expect(did(scope)).toEqual([])
  })

  test('decides alone where it is dry, and gives the last good outputs under a key', async () => {
    const scope = freshScope()
    const { plan } = twoSteps('x')
    const id = await skill({ plan: { ...plan, idempotence_key: 'twice:{{what}}' } })
    expect(await propose(scope, id, { dry_run: true })).toMatchObject({ status: 'ok', dry_run: true, steps: [{ status: 'planned' }, {}] })
    expect(did(scope)).toEqual([])
    expect(await propose(scope, id)).toMatchObject({ status: 'ok', idempotent: false })
    await evict(stubOf(scope))
    expect(await propose(scope, id)).toMatchObject({ status: 'ok', idempotent: true, outputs: { done: 'x' } })
    expect(did(scope)).toHaveLength(2)
  })

  test.each([
    ['gives the outputs that are short', 'x', { outputs: { done: 'x' }, reason: null }],
    ['says that they are gone where they are long', 'x'.repeat(280), { outputs: {}, reason: expect.stringContaining('is older than') }],
  ])('happens once under a key also behind the retention, and %s', async (_, what, told) => {
    const scope = freshScope()
    const { plan } = twoSteps('x')
    const inputs = { inputs: { what } }
    const id = await skill({ plan: { ...plan, idempotence_key: 'twice:{{what}}' } })
    expect(await propose(scope, id, inputs)).toMatchObject({ status: 'ok', idempotent: false })
    await age(stubOf(scope), 8)
    expect(await propose(scope, id, inputs)).toMatchObject({ status: 'ok', idempotent: true, ...told })
    expect(did(scope)).toHaveLength(2)
  })

  test('happens once where it is sent twice at once under a key', async () => {
    const scope = freshScope()
    const { plan } = twoSteps('x')
    const id = await skill({ plan: { ...plan, idempotence_key: 'twice:{{what}}' } })
    const results = await Promise.all([propose(scope, id), propose(scope, id)])
    expect(results.map(({ status }) => status)).toEqual(['ok', 'ok'])
    expect(results.filter(({ idempotent }) => idempotent)).toHaveLength(1)
    expect(did(scope)).toEqual(['first x', 'second x'])
  })

  test('compensates the completed steps if a step fails', async () => {
    const scope = freshScope()
    const { plan } = twoSteps('x')
    const [first] = plan.steps
    const steps = [first, { tool: 'act', args: { text: 'throw' }, timeout_ms: 5000 }]
    const compensation = [{ when: 'partial_failure', tool: 'act', args: { text: 'undo {{what}}' }, step: 0 }]
    const id = await skill({ plan: { ...plan, steps, compensation } })
    expect(await propose(scope, id)).toMatchObject({ status: 'partial_failure', compensation: [{ tool: 'act', status: 'ok' }] })
    expect(did(scope)).toEqual(['first x', 'throw', 'undo x'])
  })
})

describe('a run that a crash cuts off', () => {
  /** Dies in the middle of its first step, and comes to its end on waking. */
  async function cutOff(changes: Record<string, unknown> = {}) {
    const scope = freshScope()
    const id = await skill(changes)
    const gate = Promise.withResolvers<void>()
    effectGates.set(scope, gate.promise)
    const answer = propose(scope, id).catch(() => null)
    await until(async () => did(scope).length === 1, 'the first step has begun')
    const stub = await crash(scope)
    effectGates.delete(scope)
    gate.resolve()
    await answer
    await until(async () => (await entriesOf(stub, 'skill-applied')).length === 1, 'the run is at its end')
    return { scope, applied: await entriesOf(stub, 'skill-applied') }
  }

  test('continues after its last recorded step', async () => {
    const { plan } = twoSteps('x')
    const { scope, applied } = await cutOff({ plan: { ...plan, idempotence_key: 'twice:{{what}}' } })
    expect(did(scope)).toEqual(['first x', 'first x', 'second x'])
    expect(new Set(effects.filter((effect) => effect.scope === scope && effect.text === 'first x').map(({ key }) => key)).size).toBe(1)
    expect(applied).toMatchObject([{ status: 'ok' }])
  })

  test('has its steps although retention has come meanwhile', async () => {
    const scope = freshScope()
    const id = await skill()
    const gate = Promise.withResolvers<void>()
    effectGates.set(`${scope} second x`, gate.promise)
    const answer = propose(scope, id)
    await until(async () => did(scope).length === 2, 'the second step has begun')
    const steps = () =>
      inObject(stubOf(scope), ({ storage }) => {
        storage.sql.exec('UPDATE log SET at = at - 864000000')
        storage.sql.exec('UPDATE effects SET started_at = started_at - 864000000')
        return storage.sql.exec('SELECT count(*) AS n FROM effects').one()['n']
      })
    expect(await steps()).toBe(2)
    await runAlarm(stubOf(scope))
    expect(await steps()).toBe(2)
    gate.resolve()
    expect(await answer).toMatchObject({ status: 'ok' })
  })

  test('ends as unknown where a step without a key may have happened', async () => {
    const { scope, applied } = await cutOff()
    expect(did(scope)).toEqual(['first x'])
    expect(applied).toMatchObject([{ status: 'unknown' }])
  })
})

describe('the copy of the skills on disk', () => {
  const withoutRegistry = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    await env.DB.exec('ALTER TABLE artifact_versions RENAME TO artifact_versions_away')
    try {
      return await work()
    } finally {
      await env.DB.exec('ALTER TABLE artifact_versions_away RENAME TO artifact_versions')
    }
  }

  test('serves an object that restarts while D1 is unavailable', async () => {
    const scope = freshScope()
    const id = await skill()
    expect(await propose(scope, id, { dry_run: true })).toMatchObject({ status: 'ok' })
    await evict(stubOf(scope))
    await withoutRegistry(async () => {
      expect(await propose(scope, id)).toMatchObject({ status: 'ok', outputs: { done: 'x' } })
      const { body } = await call(`${scopePath(scope, '/bulletin')}?text=twice`)
      expect(body.cards.map(({ skill_id }: { skill_id: string }) => skill_id)).toContain(id)
    })
    expect(did(scope)).toEqual(['first x', 'second x'])
    expect(await entriesOf(stubOf(scope), 'skills-degraded')).toHaveLength(1)
  })

  test('is not made by looking at a scope that keeps nothing, and is whole once it keeps something', async () => {
    const scope = freshScope()
    const id = await skill()
    const ids = () => stubOf(scope).skillIds()
    expect(await ids()).toContain(id)
    const tables = await inObject(stubOf(scope), ({ storage }) =>
      storage.sql.exec(`SELECT 1 FROM sqlite_master WHERE name = 'state'`).toArray(),
    )
    expect(tables).toEqual([])
    await send(stubOf(scope), note(scope, 'noise'))
    expect(await ids()).toContain(id)
    await evict(stubOf(scope))
    await withoutRegistry(async () => expect(await ids()).toContain(id))
  })

  test('is kept once the scope keeps anything, and not where it was only asked', async () => {
    const scope = freshScope()
    const id = await skill()
    expect((await call(`${scopePath(scope, '/bulletin')}?text=twice`)).body.cards).not.toEqual([])
    const tables = await inObject(stubOf(scope), ({ storage }) =>
      storage.sql.exec(`SELECT name FROM sqlite_master WHERE name = 'state'`).toArray(),
    )
    expect(tables).toEqual([])
    await stubOf(scope).configure({ goal_labels: ['twice'] }, 'ops')
    expect(await propose(scope, id, { dry_run: true })).toMatchObject({ status: 'ok' })
    await evict(stubOf(scope))
    await withoutRegistry(async () => expect(await propose(scope, id)).toMatchObject({ status: 'ok' }))
  })

  test('follows what is deprecated, also across an eviction', async () => {
    const scope = freshScope()
    const id = await skill()
    expect(await propose(scope, id, { dry_run: true })).toMatchObject({ status: 'ok' })
    await evict(stubOf(scope))
    await call(`/v1/skills/${id}/state`, { json: { state: 'deprecated' } })
    expect(await propose(scope, id, { dry_run: true })).toMatchObject({ status: 'refused' })
    await evict(stubOf(scope))
    const held = await inObject(stubOf(scope), ({ storage }) => storage.sql.exec('SELECT id FROM artifacts WHERE id = ?', id).toArray())
    expect(held).toEqual([])
  })

  test('is read again as a whole where it was not kept as a whole', async () => {
    const id = await skill()
    const kept = await inObject(stubOf(freshScope()), async ({ storage }) => {
      const database = openDatabase(storage, () => ({}))
      database.write('any', 'thing')
      const copyOf = (...changes: ArtifactChange[]) => {
        const loaded: ArtifactChange[] = []
        const copy = new ArtifactCopy({
          kind: 'skill',
          subscription: () => ({ kind: 'skill', scope: '' }),
          read: async () => ({ changes, revision: copy.revision + 7, more: false }),
          database,
          unit: (work) => database.transaction(() => work(database as unknown as Unit)),
          apply: (page) => {
            loaded.push(...page.changes)
            return page
          },
          limits: { versions: 9, bytes: 4000 },
        })
        copy.load()
        return { copy, loaded: [...loaded] }
      }
      const change = (number: number): ArtifactChange => {
        const artifact = { id: `${id}.${number}`, version: '1.0.0', content: 'é'.repeat(1000) }
        return { ...artifact, artifact: artifact as Artifact }
      }
      await copyOf(change(1)).copy.catchUp(1000)
      const first = copyOf(change(2))
      const { revision } = first.copy
      await first.copy.catchUp(1000)
      const second = copyOf()
      return { first: { revision, changes: first.loaded }, second: { revision: second.copy.revision, changes: second.loaded } }
    })
    expect([kept.first.revision, kept.first.changes.length]).toEqual([7, 1])
    expect([kept.second.revision, kept.second.changes.map((change) => change.id)]).toEqual([0, [`${id}.1`]])
  })
})

describe('in the loop', () => {
  test("a turn's model gets the bulletin once, and its proposals are gated, run and answered", async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const id = await skill()
    behaviours.set(scope, async (_, deps) => ({ said: await ask(deps, `propose ${id} twice`), again: await ask(deps, 'thank you') }))
    const [record] = await sendAndSettle(stub, note(scope, 'go'))
    expect(record).toMatchObject({ outcome: { by: 'turn', result: { said: expect.stringContaining('it was done') } } })
    expect(did(scope)).toEqual(['first m', 'second m'])
    // The other tests' skills fit, too: only so many are shown.
    expect(await entriesOf(stub, 'bulletin-built')).toHaveLength(1)
    expect(await entriesOf(stub, 'skill-decided')).toMatchObject([{ skill_id: id, from: 'model', decision: { verdict: 'allow' } }])
    const [turn] = await entriesOf(stub, 'turn-started')
    expect(await entriesOf(stub, 'skill-applied')).toMatchObject([{ status: 'ok', trace_id: turn?.trace_id, parent_id: turn?.span_id }])
  })

  test.each([
    ["what: 'm'", true],
    ["what: 'n'", false],
  ])('a run is one act of its turn, which a reflex in shadow is compared with: inputs { %s } agree: %s', async (inputs, agreed) => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const id = await skill()
    const action = `{ action_type: 'run_skill', skill_id: ${JSON.stringify(id)}, inputs: { ${inputs} } }`
    const { id: reflex } = await write(`return ${action}`, { state: 'shadow' })
    await stub.configure({ reflexes: [{ id: reflex }] }, 'ops')
    behaviours.set(scope, async (_, deps) => void (await ask(deps, `propose ${id} twice`)))
    await sendAndSettle(stub, note(scope, 'go'))
    expect(await entriesOf(stub, 'turn-ended')).toMatchObject([{ acts: [{ act: 'run_skill', skill_id: id }] }])
    expect(await entriesOf(stub, 'reflex-compared')).toMatchObject([{ reflex_id: reflex, agreed }])
  })

  test("a repeated turn's proposal is given the run that it had", async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const id = await skill()
    let attempts = 0
    behaviours.set(scope, async (_, deps) => {
      await ask(deps, `propose ${id} twice`)
      attempts += 1
      if (attempts === 1) throw new Error('after the skill had run')
    })
    const sent = send(stub, note(scope, 'go'))
    const [event_id = ''] = await sent
    await until(async () => attempts === 1, 'the first attempt has failed')
    await hurry(stub)
    await until(async () => (await stub.event(event_id))?.status === 'completed', 'the second attempt is done')
    expect(did(scope)).toEqual(['first m', 'second m'])
  })

  test('a reflex runs a skill, gated like any other', async () => {
    const scope = freshScope()
    const id = await skill()
    const { id: reflex } = await write(
      `return { action_type: 'run_skill', skill_id: ${JSON.stringify(id)}, inputs: { what: context.event.text } }`,
    )
    await stubOf(scope).configure({ reflexes: [{ id: reflex }], goal_labels: ['twice'] }, 'ops')
    expect(await sendAndSettle(stubOf(scope), note(scope, 'e'))).toMatchObject([{ outcome: { by: 'reflex' } }])
    expect(did(scope)).toEqual(['first e', 'second e'])
  })

  test("a reflex's skill holds up no other action while its plan waits, but another run of that skill", async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const [first, second] = twoSteps('x').plan.steps
    const busy = { ...first, args: { text: 'busy once' }, retry: { max_attempts: 2, backoff_ms: 2000 } }
    const id = await skill({ plan: { ...twoSteps('x').plan, steps: [busy, second] } })
    const { id: reflex } = await write(`const { text } = context.event
      if (text.startsWith('plan ')) return { action_type: 'run_skill', skill_id: ${JSON.stringify(id)}, inputs: { what: text.slice(5) } }
      return { action_type: 'call_tool', tool: 'act', args: { text } }`)
    await stub.configure({ reflexes: [{ id: reflex }], goal_labels: ['twice'] }, 'ops')
    const records = await sendAndSettle(stub, note(scope, 'plan a'), note(scope, 'plan b'), note(scope, 'quick'))
    expect(records.map(({ outcome }) => outcome?.by)).toEqual(['reflex', 'reflex', 'reflex'])
    expect(did(scope).indexOf('quick')).toBeLessThan(2)
    expect(did(scope).filter((text) => text !== 'quick')).toEqual(['busy once', 'busy once', 'second a', 'busy once', 'second b'])
  })

  test('one that somebody has to approve is asked for by a reflex: its event is done, and no model is asked', async () => {
    const scope = freshScope()
    const id = await skill({ policy: { allow_roles: ['agent'], needs_approval_if: ['true'] } })
    const { id: reflex } = await write(`return { action_type: 'run_skill', skill_id: ${JSON.stringify(id)}, inputs: { what: 'x' } }`)
    await stubOf(scope).configure({ reflexes: [{ id: reflex }], goal_labels: ['twice'] }, 'ops')
    expect(await sendAndSettle(stubOf(scope), note(scope, 'e'))).toMatchObject([{ outcome: { by: 'reflex' } }])
    expect(await entriesOf(stubOf(scope), 'action-ended')).toMatchObject([{ status: 'ok' }])
    expect(await entriesOf(stubOf(scope), 'approval-requested')).toHaveLength(1)
  })

  test('one that the gate refuses hands its event to the slow path', async () => {
    const scope = freshScope()
    behaviours.set(scope, async () => null)
    const id = await skill({ policy: { allow_roles: ['ReleaseManager'] } })
    const { id: reflex } = await write(`return { action_type: 'run_skill', skill_id: ${JSON.stringify(id)}, inputs: { what: 'x' } }`)
    await stubOf(scope).configure({ reflexes: [{ id: reflex }], goal_labels: ['twice'] }, 'ops')
    expect(await sendAndSettle(stubOf(scope), note(scope, 'e'))).toMatchObject([{ outcome: { by: 'turn' } }])
    expect(did(scope)).toEqual([])
  })
})

describe('the protocol of a turn', () => {
  test.each(['asp', 'tools'] as const)('is %s if the scope says so: the model proposes and gets results by it', async (skill_protocol) => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const id = await skill()
    await stub.configure({ skill_protocol }, 'ops')
    behaviours.set(scope, async (_, deps) => ({ said: await ask(deps, `propose ${id} twice`) }))
    expect(await sendAndSettle(stub, note(scope, 'go'))).toMatchObject([
      { outcome: { result: { said: expect.stringContaining('it was done') } } },
    ])
    expect(did(scope)).toEqual(['first m', 'second m'])
    const [first] = await entriesOf(stub, 'model-called')
    const content = JSON.stringify(first?.content)
    expect([content.includes('"toolName":"propose_skill"'), content.includes('<SKILL_PROPOSE>')]).toEqual([
      skill_protocol === 'tools',
      skill_protocol === 'asp',
    ])
  })
})

describe('a missing slot with a pinned parser', () => {
  const parsed = (model = 'offline') =>
    skill({ llm_support: { parsers: [{ name: 'read_what', model, temperature: 0, outputs: ['what'] }] } })

  test('is read from what was said over the API, by the model of the scope, within its budget', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const answer = await propose(scope, await parsed(), { inputs: {}, why: 'do it twice, they said milk' })
    expect(answer).toMatchObject({ status: 'ok', outputs: { done: 'milk' } })
    expect(did(scope)).toEqual(['first milk', 'second milk'])
    expect(await entriesOf(stub, 'skill-slots-parsed')).toMatchObject([{ attempts: [{ slot: 'what', parser: 'read_what', filled: true }] }])
    const [called] = await entriesOf(stub, 'model-called')
    expect(called).toMatchObject({ turn_id: null, status: 'ok', trace_id: answer.trace_id })
    await stub.configure({ token_budget: { tokens: 0, per: 'day' } }, 'ops')
    const refused = await propose(scope, await parsed(), { inputs: {}, why: 'do it twice, they said milk' })
    expect(refused).toMatchObject({ status: 'clarify', reason: expect.stringContaining('token budget') })
    expect(did(scope)).toHaveLength(2)
  })

  test("is read from the event of a reflex that asks for it, and otherwise left to the event's turn", async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    behaviours.set(scope, async () => null)
    const { id: reflex } = await write(`return { action_type: 'run_skill', skill_id: ${JSON.stringify(await parsed())}, inputs: {} }`)
    await stub.configure({ reflexes: [{ id: reflex }], goal_labels: ['twice'] }, 'ops')
    expect(await sendAndSettle(stub, note(scope, 'they said milk'))).toMatchObject([{ outcome: { by: 'reflex' } }])
    expect(did(scope)).toEqual(['first milk', 'second milk'])
    expect(await sendAndSettle(stub, note(scope, 'nothing of it'))).toMatchObject([{ outcome: { by: 'turn' } }])
    expect(did(scope)).toHaveLength(2)
  })

  test.each([
    ['the text does not say it', 'offline', 'do it twice', 'the text does not say what'],
    ['another model is here', 'gpt-4o-2025-04', 'do it twice, they said milk', 'pinned to the model gpt-4o-2025-04'],
  ])('is asked for, and why, where %s', async (_, model, why, reason) => {
    const scope = freshScope()
    const answer = await propose(scope, await parsed(model), { inputs: {}, why })
    expect(answer).toMatchObject({ status: 'clarify', questions: [{ slot: 'what' }], reason: expect.stringContaining(reason) })
    expect(did(scope)).toEqual([])
  })
})

describe('the settings of a scope', () => {
  async function scopeWith(settings: object) {
    const scope = freshScope()
    await stubOf(scope).configure(settings, 'ops')
    // A word of its own, so that no skill of another test hits.
    const word = crypto.randomUUID().replaceAll('-', '')
    const { tau: _tau, ...activation } = { ...twoSteps('x').activation, keywords_any: [word] }
    const put = (changes: Record<string, unknown> = {}) => skill({ activation, ...changes })
    const cards = async (): Promise<string[]> =>
      (await call(`${scopePath(scope, '/bulletin')}?text=${word}`)).body.cards.map((card: { skill_id: string }) => card.skill_id)
    return { scope, put, cards }
  }

  test.each([
    ['reached', 0.3, 'ok', ['what']],
    ['not reached', 0.9, 'refused', ['what', 'reflex_why']],
  ])('`tau` is the share of the score that a skill needs: %s', async (_, tau, status, required) => {
    const { scope, put } = await scopeWith({ tau, goal_labels: ['twice'] })
    const id = await put()
    expect(await propose(scope, id, { why: 'nothing else' })).toMatchObject({ status })
    const { tools } = (await askMcp(scope, 'tools/list')).body.result
    expect(tools.find(({ title }: { title: string }) => title === `${id}@1.0.0`)).toMatchObject({ inputSchema: { required } })
  })

  test.each([
    ['enforce', 'refused', 0],
    ['observe', 'ok', 2],
  ])('`policy_mode: %s` answers %s where the policy denies', async (policy_mode, status, steps) => {
    const { scope, put } = await scopeWith({ policy_mode })
    const id = await put({ policy: { allow_roles: ['release-manager'] }, activation: twoSteps('x').activation })
    expect(await propose(scope, id)).toMatchObject({ status, decision: { verdict: 'deny' } })
    expect(did(scope)).toHaveLength(steps)
  })

  test('`k_cards` limits the bulletin, and `goal_postconditions` break a tie', async () => {
    const { scope, put, cards } = await scopeWith({})
    const plan = {
      ...twoSteps('x').plan,
      idempotence_key: 'k:{{what}}',
      compensation: [{ when: 'partial_failure', tool: 'act', args: { text: 'undo' } }],
    }
    const putWith = async (effect: string) => put({ plan, effects: { writes: [], external: [effect] } })
    const ids = [await putWith('made:a'), await putWith('made:b')]
    expect((await cards()).toSorted()).toEqual(ids.toSorted())
    for (const [index, effect] of ['made:a', 'made:b'].entries()) {
      await stubOf(scope).configure({ k_cards: 1, goal_postconditions: [effect] }, 'ops')
      expect(await cards()).toEqual([ids[index]])
    }
  })

  test('the `entity_types` of the events in the context count in the bulletin and in proposals over the API', async () => {
    const { scope, put, cards } = await scopeWith({})
    const activation = {
      ...twoSteps('x').activation,
      goal_labels: [],
      keywords_any: [],
      entity_types: ['host'],
      score_weights: { entity_type: 2 },
    }
    const id = await put({ activation })
    expect(await propose(scope, id)).toMatchObject({ status: 'refused' })
    expect(await cards()).toEqual([])
    behaviours.set(scope, async () => null)
    await sendAndSettle(stubOf(scope), note(scope, 'go', { entity_types: ['host'] }))
    expect(await cards()).toEqual([id])
    expect(await propose(scope, id)).toMatchObject({ status: 'ok' })
  })

  test.each(['reflex', 'turn'])('the `entity_types` of an event count in the score of a skill that its %s proposes', async (by) => {
    const { scope, put } = await scopeWith({})
    const id = await put({
      activation: {
        ...twoSteps('x').activation,
        goal_labels: [],
        keywords_any: [],
        entity_types: ['host'],
        score_weights: { entity_type: 2 },
      },
    })
    if (by === 'reflex') {
      const { id: reflex } = await write(`return { action_type: 'run_skill', skill_id: ${JSON.stringify(id)}, inputs: { what: 'm' } }`)
      await stubOf(scope).configure({ reflexes: [{ id: reflex }] }, 'ops')
    } else behaviours.set(scope, async (_, deps) => void (await ask(deps, `propose ${id} twice`)))
    await sendAndSettle(stubOf(scope), note(scope, 'go', { entity_types: 'host' }))
    expect(did(scope)).toEqual([])
    await sendAndSettle(stubOf(scope), note(scope, 'go', { entity_types: ['Host', 7] }))
    expect(did(scope)).toEqual(['first m', 'second m'])
  })
})
