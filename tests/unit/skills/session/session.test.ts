import { describe, expect, test } from 'vitest'
import { deployManifest } from '../deploy-manifest.ts'
import { deploy, inputs, request, SessionWorld } from '../session-world.ts'

describe('a session', () => {
  test('gives the bulletin once, and logs the seed and the cards', () => {
    const world = new SessionWorld()
    const session = world.session({ goal_labels: ['deploy'] })
    expect(session.bulletin('Deploy it')).toContain('- deploy.container.appservice')
    expect(session.bulletin('Deploy it')).toBe('')
    expect(world.kinds()).toEqual(['blackboard-seeded', 'bulletin-built'])
    expect(world.log[1]).toMatchObject({ trace_id: 'trace-1', cards: [{ skill_id: 'deploy.container.appservice', score: 4 }] })
  })

  test('runs what the gate allows, once, and tells all of it', async () => {
    const world = new SessionWorld()
    const session = world.session()
    const result = await session.propose(deploy, request)
    expect(result).toMatchObject({
      skill_id: 'deploy.container.appservice',
      version: '1.3.0',
      status: 'ok',
      outputs: { endpoint: 'https://payments-stg-webapp.azurewebsites.net' },
      decision: { verdict: 'allow', score: 4, tau: 3.5, to_pass: [], enforced: true },
      idempotent: false,
      trace_id: 'trace-1',
    })
    expect(result.decision.stages.map(({ stage, verdict }) => `${stage} ${verdict}`)).toEqual([
      'compat passed',
      'preconditions passed',
      'score passed',
      'policy passed',
    ])
    expect(result.steps).toEqual([0, 1, 2].map((index) => ({ index, tool: 'term.exec', status: 'ok', duration_ms: 0 })))
    expect(world.called).toHaveLength(3)
    expect(session.blackboard.work).toEqual({ endpoint: 'https://payments-stg-webapp.azurewebsites.net' })
    expect([...world.runs.values()].map(({ status }) => status)).toEqual(['ok'])
    const steps = Array(3).fill('skill-step-ended')
    expect(world.kinds()).toEqual(['blackboard-seeded', 'skill-decided', 'skill-started', ...steps, 'skill-applied', 'blackboard-changed'])
    expect(world.log.at(-1)).toMatchObject({ revision: 1, changes: [{ path: 'work.endpoint', change: 'added' }] })
  })

  test('gives the last good outputs where the key is known, and says so', async () => {
    const world = new SessionWorld()
    const session = world.session()
    await session.propose(deploy, request)
    expect(await session.propose(deploy, request)).toMatchObject({ status: 'ok', idempotent: true, steps: [] })
    expect(world.called).toHaveLength(3)
  })

  test('stops at the stage that fails and says what would pass', async () => {
    const world = new SessionWorld()
    const result = await world.session().propose(deploy, { ...request, roles: ['publisher'] })
    expect(result).toMatchObject({
      status: 'refused',
      decision: { verdict: 'deny', to_pass: ['the caller must have the role ReleaseManager'] },
    })
    expect(result.decision.stages.at(-1)).toMatchObject({ stage: 'policy', verdict: 'failed' })
    expect(world.called).toEqual([])
  })

  test('knows no other skills than the registered ones', async () => {
    const result = await new SessionWorld().session().propose({ ...deploy, skill_id: 'deploy.other' }, request)
    expect(result).toMatchObject({ status: 'refused', version: null, reason: 'there is no skill deploy.other' })
    expect(result.decision.stages.every(({ verdict }) => verdict === 'not_reached')).toBe(true)
  })

  test('decides without running where that is asked for', async () => {
    const world = new SessionWorld()
    const result = await world.session().propose(deploy, { ...request, dry_run: true })
    expect(result).toMatchObject({ status: 'ok', run_id: null, decision: { verdict: 'allow' } })
    expect(result.steps.map(({ status }) => status)).toEqual(['planned', 'planned', 'planned'])
    const open = await world.session().propose({ ...deploy, inputs: {} }, { ...request, dry_run: true })
    expect(open.status).toBe('clarify')
    expect([world.called, world.asked, world.runs.size]).toEqual([[], [], 0])
  })

  test('logs no value of a secret input, wherever it is', async () => {
    const world = new SessionWorld()
    const secret = 'hunter2-hunter2'
    world.use(
      deployManifest({
        'signature.inputs.1': { name: 'image_tag', type: 'string', required: true, secret: true },
        'signature.blackboard_bindings.inputs': { app_name: 'ctx.appservice', image_tag: 'ctx.hidden.tag' },
      }),
    )
    world.tools['term.exec'] = ({ cmd }) => ({ ran: cmd ?? null })
    const session = world.session(
      { secret_paths: ['ctx.hidden.tag'] },
      { agent_state: { ctx: { hidden: { tag: secret, other: 'kept' } } } },
    )
    const result = await session.propose({ ...deploy, inputs: { app_name: inputs.app_name } }, request)
    expect(result.status).toBe('ok')
    expect(JSON.stringify(world.called)).toContain(secret)
    expect(JSON.stringify(world.log)).not.toContain(secret)
    expect(JSON.stringify(world.log)).toContain('kept')
  })

  test('only observes the policy if configured to, but never runs a deprecated version', async () => {
    const world = new SessionWorld()
    const watched = world.session({ policy_mode: 'observe' })
    expect(await watched.propose(deploy, { ...request, roles: [] })).toMatchObject({
      status: 'ok',
      decision: { verdict: 'deny', enforced: false },
    })
    world.use(deployManifest(), 'deprecated')
    expect(await watched.propose(deploy, { ...request, roles: [] })).toMatchObject({ status: 'refused', decision: { enforced: true } })
  })
})

describe('slots', () => {
  test('are parsed first where the gate says that they can be, and the gate decides again', async () => {
    const world = new SessionWorld()
    world.answer = '{"app_name":"payments-stg-webapp"}'
    const result = await world.session().propose({ ...deploy, inputs: { image_tag: inputs.image_tag } }, request)
    expect(result.status).toBe('ok')
    expect(world.kinds().slice(1, 4)).toEqual(['skill-decided', 'skill-slots-parsed', 'skill-decided'])
    expect(world.asked[0]).toContain('Deploy latest to staging')
  })

  test('that cannot be parsed are asked for; nothing is guessed', async () => {
    const world = new SessionWorld()
    world.answer = 'probably payments'
    const result = await world.session().propose({ ...deploy, inputs: { image_tag: inputs.image_tag } }, request)
    expect(result).toMatchObject({ status: 'clarify', questions: [{ slot: 'app_name', question: 'What is app_name (string)?' }] })
    expect(world.called).toEqual([])
  })
})

describe('proposals', () => {
  test('are one at a time, also where a tool makes one', async () => {
    const world = new SessionWorld()
    const session = world.session()
    const inner: unknown[] = []
    world.tools['term.exec'] = async () => {
      inner.push((await session.propose(deploy, request)).reason, (await session.propose({ ...deploy, skill_id: 'x' }, request)).reason)
    }
    expect((await session.propose(deploy, request)).status).toBe('ok')
    expect(inner.slice(0, 2)).toEqual([
      'deploy.container.appservice is being run: one at a time, and not by its own tools',
      'one at a time: deploy.container.appservice is being run',
    ])
    expect(world.runs.size).toBe(1)
  })

  test('do not come back to a skill within itself, nor go deeper than three', async () => {
    const world = new SessionWorld()
    const within = world.session({ ancestors: ['a', 'deploy.container.appservice'] })
    expect((await within.propose(deploy, request)).reason).toContain('must not run within itself: a → deploy.container.appservice → deploy')
    const deep = world.session({ ancestors: ['a', 'b', 'c'] })
    expect((await deep.propose(deploy, request)).reason).toContain('at most 3 deep')
    await world.session({ ancestors: ['a'] }).propose(deploy, request)
    expect(world.chains).toEqual([['a', 'deploy.container.appservice']])
  })

  test('are eight in a turn, refused ones too', async () => {
    const session = new SessionWorld().session()
    const results = []
    for (let index = 0; index < 9; index++) results.push(await session.propose({ ...deploy, skill_id: 'no.such' }, request))
    expect(results[7]?.reason).toBe('there is no skill no.such')
    expect(results[8]?.reason).toBe('a turn has at most 8 proposals')
  })

  test('of two turns at once do not exceed max_concurrency', async () => {
    const world = new SessionWorld()
    world.use(deployManifest({ 'activation.max_concurrency': 1, 'plan.idempotence_key': undefined, 'effects.external': [] }))
    const gate = Promise.withResolvers<string>()
    world.tools['term.exec'] = () => gate.promise
    const proposals = [world.session(), world.session()].map((session) => session.propose(deploy, request))
    // Only the one that is refused can end by itself.
    await Promise.race(proposals)
    gate.resolve('done')
    const results = await Promise.all(proposals)
    expect(results.map(({ status }) => status).toSorted()).toEqual(['ok', 'refused'])
  })
})

test('two runs of one key at once have the effect once, and the later one gives what the earlier gave', async () => {
  const world = new SessionWorld()
  world.use(deployManifest({ 'activation.max_concurrency': 2 }))
  world.tools['term.exec'] = () => new Promise((resolve) => setImmediate(resolve))
  const results = await Promise.all([world.session(), world.session()].map((session) => session.propose(deploy, request)))
  // Either of the two may come first.
  expect(results.map(({ status }) => status)).toEqual(['ok', 'ok'])
  expect(results.filter(({ idempotent }) => idempotent)).toHaveLength(1)
  expect(world.called).toHaveLength(3)
})

test('a decision that another turn has overtaken is made again', async () => {
  const world = new SessionWorld()
  world.use(deployManifest({ 'activation.max_concurrency': 1 }))
  const log = ({ kind }: { kind: string }) => {
    if (kind === 'skill-decided') queueMicrotask(() => (world.running = 1))
  }
  expect(await world.session({}, {}, { log }).propose(deploy, request)).toMatchObject({
    status: 'refused',
    reason: expect.stringContaining('1 of at most 1 run'),
  })
})

describe('an approval', () => {
  const careful = (changes: Record<string, unknown> = {}) => deployManifest({ 'policy.needs_approval_if': ['true'], ...changes })

  async function parked() {
    const world = new SessionWorld()
    world.use(careful())
    const result = await world.session().propose(deploy, request)
    const [run] = world.parked
    if (!run) throw new Error('nothing is parked')
    return { world, result, approval: { ...run, approval_id: 'approval-1' } }
  }

  test('is asked for, and what was approved is what runs', async () => {
    const { world, result, approval } = await parked()
    expect(result).toMatchObject({ status: 'needs_approval', approval_id: 'approval-1' })
    expect(world.called).toEqual([])
    expect(approval).toMatchObject({ inputs, from: 'model', recent_success: false, manifest_hash: expect.stringMatching(/^[\da-f]{64}$/) })
    expect(await world.session().runApproved(approval)).toMatchObject({ status: 'ok' })
    expect([...world.runs.values()][0]?.record.approval_id).toBe('approval-1')
  })

  test.each([
    ['another manifest', { manifest: careful({ description: 'changed' }) }, {}, 'is not the one that was approved'],
    ['a deprecated version', { manifest: careful(), state: 'deprecated' as const }, {}, 'is deprecated by now'],
    ['other inputs', { manifest: careful() }, { inputs: { ...inputs, app_name: 'production' } }, 'inputs of deploy'],
    ['a hash that was changed with them', { manifest: careful() }, { inputs_hash: 'f'.repeat(64) }, 'inputs of deploy'],
  ])(
    'does not run %s',
    async (
      _,
      { manifest, state = 'active' }: { manifest: ReturnType<typeof careful>; state?: 'active' | 'deprecated' },
      changes,
      reason,
    ) => {
      const { world, approval } = await parked()
      world.use(manifest, state)
      const result = await world.session().runApproved({ ...approval, ...changes })
      expect(result.status).toBe('refused')
      expect(result.reason).toContain(reason)
      expect(world.called).toEqual([])
    },
  )

  test('does not run with an input that the blackboard has since given', async () => {
    const world = new SessionWorld()
    const optional = { name: 'slot', type: 'string' }
    const manifest = careful({ 'signature.inputs.2': optional, 'signature.blackboard_bindings.inputs': { slot: 'ctx.slot' } })
    world.use(manifest)
    await world.session().propose(deploy, request)
    const [run] = world.parked
    if (!run) throw new Error('nothing is parked')
    const later = world.session({}, { agent_state: { ctx: { slot: 'production', subscription: 'blue' } } })
    expect((await later.runApproved({ ...run, approval_id: 'approval-1' })).reason).toContain('the inputs of')
  })

  test('is parked without its secrets, which come from the blackboard again', async () => {
    const world = new SessionWorld()
    const secret = { name: 'key', type: 'string', required: true, secret: true }
    world.use(careful({ 'signature.inputs.2': secret, 'signature.blackboard_bindings.inputs': { key: 'ctx.key' } }))
    const seeds = { agent_state: { ctx: { key: 'hunter2-hunter2', subscription: 'blue' } } }
    await world.session({}, seeds).propose(deploy, request)
    const [run] = world.parked
    if (!run) throw new Error('nothing is parked')
    expect(JSON.stringify(run)).not.toContain('hunter2')
    const rotated = { agent_state: { ctx: { key: 'another-one', subscription: 'blue' } } }
    expect((await world.session({}, rotated).runApproved({ ...run, approval_id: 'approval-1' })).status).toBe('ok')
  })

  test('is no way round the other stages', async () => {
    const { world, approval } = await parked()
    world.tools = { 'term.exec': () => 'done' }
    expect(await world.session().runApproved(approval)).toMatchObject({
      status: 'refused',
      decision: { to_pass: ['the tool tests.run must be available'] },
    })
  })
})

describe('a run that is resumed', () => {
  test('comes to its end with the record that it began with', async () => {
    const world = new SessionWorld()
    await world.session().propose(deploy, request)
    const record = [...world.runs.values()][0]?.record
    if (!record) throw new Error('no run')
    const called = world.called.length
    const result = await world.session().resume(record)
    expect(world.called).toHaveLength(called)
    expect(result).toMatchObject({ status: 'ok', proposal_id: record.proposal_id, run_id: record.run_id, decision: { verdict: 'allow' } })
  })

  test('ends as unknown where its skill is gone or another one', async () => {
    const world = new SessionWorld()
    await world.session().propose(deploy, request)
    const [run] = world.runs.values()
    if (!run) throw new Error('no run')
    world.use(deployManifest({ description: 'changed' }))
    expect(await world.session().resume(run.record)).toMatchObject({ status: 'unknown', reason: expect.stringContaining('is another one') })
    world.skills = []
    expect(await world.session().resume(run.record)).toMatchObject({
      status: 'unknown',
      reason: expect.stringContaining('there is no skill'),
    })
    expect(run.status).toBe('unknown')
  })
})
