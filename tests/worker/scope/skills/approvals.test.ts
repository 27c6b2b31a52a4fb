import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { decideApproval } from '../../../../src/features/approvals/store/approvals.ts'
import { live } from '../../../support/crash-at-write.ts'
import { call, keyFor, problem } from '../../../support/http.ts'
import {
  crash,
  entriesOf,
  evict,
  freshScope,
  inObject,
  logOf,
  note,
  runAlarm,
  sendAndSettle,
  stubOf,
  until,
} from '../../../support/scopes.ts'
import { behaviours, effectGates, effects } from '../../../support/test-agents.ts'
import { acting } from '../../../support/reflex-chain.ts'
import { propose, skill, twoSteps } from '../../../support/two-step-skill.ts'
import { findApproval } from '../../../../src/features/approvals/store/approvals.ts'

const did = (scope: string) => effects.filter((effect) => effect.scope === scope).map(({ text }) => text)
const BOTH = ['first x', 'second x']
const policy = { allow_roles: ['publisher'], needs_approval_if: ['true'] }
const gated = (changes: Record<string, unknown> = {}) => skill({ policy, ...changes })

/** A run that waits, and how to decide on it. */
async function parked(changes: Record<string, unknown> = {}) {
  const scope = freshScope()
  const skill_id = await gated(changes)
  const { status, approval_id } = await propose(scope, skill_id)
  expect(status).toBe('needs_approval')
  const id = approval_id ?? ''
  const decide = (how: 'approve' | 'reject', key?: string) =>
    call(`/v1/approvals/${id}/${how}`, { json: {}, ...(key === undefined ? {} : { key }) })
  return { scope, skill_id, id, decide }
}

/** Decided in D1, and the scope does not know. */
const decideUntold = (id: string, now = Date.now()) =>
  decideApproval(env.DB, {
    id,
    status: 'approved',
    by: { key_id: 'k-1', name: 'olga', is_admin: false },
    reason: null,
    now,
  })

const rows = (scope: string) =>
  inObject(stubOf(scope), (state) =>
    state.storage.sql
      .exec(
        `SELECT approval_id, run, expires_at, parked_at FROM parked_runs UNION ALL SELECT key, payload, 0, 0 FROM jobs WHERE kind = 'approved-run'`,
      )
      .toArray(),
  )
const write = (scope: string, sql: string, ...values: unknown[]) =>
  inObject(stubOf(scope), (state) => void state.storage.sql.exec(sql, ...(values as string[])))
/** As if its next look were due. */
async function look(scope: string): Promise<void> {
  await evict(stubOf(scope))
  await stubOf(scope).poke()
}
const applied = (scope: string) => entriesOf(stubOf(scope), 'skill-applied')
const isDone = (scope: string) => until(async () => (await rows(scope)).length === 0, 'nothing of it is kept')

describe('an approval', () => {
  test('parks the run, survives an eviction, and has it run once, whoever decides at the same time', async () => {
    const { scope, skill_id, id, decide } = await parked()
    expect(did(scope)).toEqual([])
    await evict(stubOf(scope))
    const listed = await call(`/v1/approvals?scope=${encodeURIComponent(scope)}`)
    expect(listed.body.items).toMatchObject([{ id, status: 'pending', skill_id, inputs: { what: 'x' } }])
    const decisions = await Promise.all([decide('approve'), decide('reject'), decide('approve')])
    expect(decisions.map(({ status }) => status).toSorted((left, right) => left - right)).toEqual([200, 409, 409])
    const approved = decisions[1]?.status !== 200
    await isDone(scope)
    expect(await entriesOf(stubOf(scope), 'approval-decided')).toMatchObject([{ status: approved ? 'approved' : 'rejected', by: 'admin' }])
    expect(did(scope)).toEqual(approved ? BOTH : [])
  })

  test.each([
    ['approve', { decision: 'approved', run: { status: 'ok', outputs: { done: expect.anything() } } }],
    ['reject', { decision: 'rejected', run: null }],
  ] as const)('tells its scope how it ended, if the settings say so: %s', async (how, end) => {
    const { scope, skill_id, id, decide } = await parked()
    await stubOf(scope).configure({ approval_events: true }, 'ops')
    await decide(how)
    const record = await until(() => stubOf(scope).event(`approval:${id}`), 'the event is there')
    const about = { approval_id: id, skill_id, inputs: { what: 'x' }, by: 'admin' }
    expect(record?.event).toMatchObject({ type: 'approval.ended', source: 'approvals', ...about, ...end })
    const asked = (await logOf(stubOf(scope))).find(({ kind }) => kind === 'approval-requested')
    expect(record?.event.meta).toMatchObject({ trace_id: asked?.trace_id, parent_id: asked?.span_id, sender: `scope:${scope}` })
    await until(async () => (await stubOf(scope).event(`approval:${id}`))?.ended_at, 'the agent has considered it')
  })

  test('tells its scope although somebody sent an event under the id of the end to come', async () => {
    const { scope, id, decide } = await parked()
    await stubOf(scope).configure({ approval_events: true }, 'ops')
    await sendAndSettle(stubOf(scope), note(scope, 'forged', { id: `approval:${id}` }))
    await decide('approve')
    const ended = async () => (await entriesOf(stubOf(scope), 'event-accepted')).filter(({ via }) => via === 'approval')
    await until(async () => (await ended()).length > 0, 'the event is there')
    expect(await ended()).toMatchObject([{ event_type: 'approval.ended', event_ids: [expect.stringMatching(`^approval:${id}:`)] }])
  })

  test('lets the agent answer whoever asked, once the run that a person approved has ended', async () => {
    const { scope, id, decide } = await parked()
    await stubOf(scope).configure({ approval_events: true }, 'ops')
    behaviours.set(scope, async (context, deps) => {
      const [ended] = context.ofType('approval.ended' as never) as unknown as { approval_id: string; run: { status: string } }[]
      if (!ended) return null
      deps.reply(`Your request was approved: ${ended.run.status}`)
      return { told: ended.approval_id }
    })
    await decide('approve')
    const replies = await until(async () => {
      const found = await entriesOf(stubOf(scope), 'reply-sent')
      return found.length > 0 && found
    }, 'the agent has answered')
    expect(replies).toMatchObject([{ content: 'Your request was approved: ok' }])
    const event = await until(async () => {
      const record = await stubOf(scope).event(`approval:${id}`)
      return record?.ended_at && record
    }, 'the event has its outcome')
    expect(event.outcome).toMatchObject({ by: 'turn', result: { told: id } })
  })

  test('tells nothing without the setting, and nobody else can tell it', async () => {
    const { scope, id, decide } = await parked()
    await decide('approve')
    await until(async () => (await applied(scope)).length > 0, 'it has run')
    await isDone(scope)
    expect(await stubOf(scope).event(`approval:${id}`)).toBeNull()
    const json = {
      type: 'approval.ended',
      approval_id: id,
      skill_id: 'x',
      version: '1',
      inputs: {},
      decision: 'approved',
      by: null,
      reason: null,
    }
    const forged = await call(`/v1/scopes/${encodeURIComponent(scope)}/events`, { json: { ...json, run: null } })
    expect(forged).toMatchObject(problem(400, 'invalid-event'))
    expect(forged.body.detail).toContain('made by the scope alone')
  })

  test('is the same for the same question, as long as nobody has decided; another one is another', async () => {
    const { scope, skill_id, id, decide } = await parked()
    expect((await propose(scope, skill_id)).approval_id).toBe(id)
    expect((await propose(scope, skill_id, { inputs: { what: 'y' } })).approval_id).not.toBe(id)
    const other = await keyFor(['publisher'])
    expect((await propose(scope, skill_id, {}, other)).approval_id).not.toBe(id)
    await decide('reject')
    expect((await propose(scope, skill_id)).approval_id).not.toBe(id)
    expect(await entriesOf(stubOf(scope), 'approval-requested')).toHaveLength(4)
  })

  test('shows no input that the log would not show', async () => {
    const scope = freshScope()
    const { signature } = twoSteps('x')
    const skill_id = await gated({ signature: { ...signature, inputs: [...signature.inputs, { name: 'login', type: 'object' }] } })
    await stubOf(scope).configure({ redact: ['badge'] }, 'ops')
    await propose(scope, skill_id, { inputs: { what: 'x', login: { user: 'olga', badge: 'tulip' } } })
    const listed = await call(`/v1/approvals?scope=${encodeURIComponent(scope)}`)
    expect(listed.body.items).toMatchObject([{ inputs: { what: 'x', login: { user: 'olga', badge: expect.stringMatching(/^sha256:/) } } }])
    expect(listed.text).not.toContain('tulip')
  })

  test('is not asked for where too many wait', async () => {
    const { scope, skill_id } = await parked()
    const copies = Array.from({ length: 99 }, (_, index) => `copy-${index}`)
    const insert = `INSERT INTO parked_runs SELECT value, json_set(run, '$.inputs_hash', value), expires_at, parked_at FROM parked_runs, json_each(?)`
    await write(scope, insert, JSON.stringify(copies))
    expect(await propose(scope, skill_id, { inputs: { what: 'y' } })).toMatchObject({
      status: 'refused',
      reason: expect.stringContaining('100 runs wait'),
    })
    expect(await rows(scope)).toHaveLength(100)
  })

  test('that is rejected runs nothing and leaves nothing behind', async () => {
    const { scope, decide } = await parked()
    expect(await decide('reject')).toMatchObject({ status: 200, body: { status: 'rejected' } })
    await isDone(scope)
    expect(did(scope)).toEqual([])
  })

  test('that expires is logged, and can no longer be given', async () => {
    const { scope, id, decide } = await parked({ policy: { ...policy, approval_within_s: 1 } })
    await until(async () => (await call(`/v1/approvals/${id}`)).body.status === 'expired', 'its second is over')
    expect(await decide('approve')).toMatchObject(problem(409, 'approval-expired'))
    await look(scope)
    await isDone(scope)
    expect(await entriesOf(stubOf(scope), 'approval-decided')).toMatchObject([{ approval_id: id, status: 'expired', by: null }])
    expect(did(scope)).toEqual([])
    // Nobody approves what the scope has dropped, by whatever clock.
    expect(await decideUntold(id, Date.now() - 60_000)).toMatchObject({ ok: false, reason: 'expired' })
  })
})

describe('the result of an approval', () => {
  const runOf = async (id: string) => (await call(`/v1/approvals/${id}`)).body.run
  const ended = (id: string) => until(async () => (await runOf(id))?.ended_at, 'D1 knows of its end').then(() => runOf(id))

  test('is shown with it: first as running, then with its status and outputs', async () => {
    const { scope, id, decide } = await parked()
    const gate = Promise.withResolvers<void>()
    effectGates.set(scope, gate.promise)
    await decide('approve')
    await until(async () => (await runOf(id))?.status === 'running', 'D1 knows that it runs')
    expect(await runOf(id)).toMatchObject({ run_id: expect.any(String), outputs: {}, ended_at: null })
    effectGates.delete(scope)
    gate.resolve()
    const [{ run_id = '' } = {}] = await until(async () => {
      const entries = await applied(scope)
      return entries.length > 0 && entries
    }, 'it has ended')
    expect(await ended(id)).toEqual({
      run_id,
      status: 'ok',
      reason: null,
      outputs: { done: 'x' },
      steps: [
        { tool: 'act', status: 'ok' },
        { tool: 'act', status: 'ok' },
      ],
      compensation: [],
      cost_usd: 0,
      ended_at: expect.stringMatching(/^20/),
    })
    const listed = await call(`/v1/approvals?scope=${encodeURIComponent(scope)}`)
    expect(listed.body.items).toMatchObject([{ id, run: { status: 'ok' } }])
    expect(await inObject(stubOf(scope), (state) => state.storage.sql.exec('SELECT * FROM outbox').toArray())).toEqual([])
  })

  test('includes a failure and its reason, without secrets', async () => {
    const scope = freshScope()
    const { signature, plan } = twoSteps('x')
    // The tool says `the tool failed`. Set before the skill makes it secret, or it would be
    // rejected.
    await stubOf(scope).configure({ blackboard: { ctx: { code: 'tool failed' } } }, 'ops')
    const code = { name: 'code', type: 'string', required: true, secret: true }
    const skill_id = await gated({
      signature: { ...signature, inputs: [...signature.inputs, code], blackboard_bindings: { inputs: { code: 'ctx.code' }, outputs: {} } },
      plan: { ...plan, steps: [plan.steps[0], { tool: 'act', args: { text: 'throw' }, timeout_ms: 5000 }] },
    })
    const id = (await propose(scope, skill_id)).approval_id ?? ''
    await call(`/v1/approvals/${id}/approve`, { json: {} })
    const run = await ended(id)
    expect(run).toMatchObject({ status: 'partial_failure', reason: 'the [secret]', outputs: {} })
    expect(run.steps).toEqual([
      { tool: 'act', status: 'ok' },
      { tool: 'act', status: 'failed' },
    ])
  })

  test('has no outputs where the scope redacts them as a whole', async () => {
    const { scope, id, decide } = await parked()
    await stubOf(scope).configure({ redact: ['outputs'] }, 'ops')
    await decide('approve')
    const { status, outputs } = await ended(id)
    expect({ status, outputs }).toEqual({ status: 'ok', outputs: {} })
  })

  test('is a refusal where the gate decided otherwise by then', async () => {
    const { scope, skill_id, id } = await parked()
    await decideUntold(id)
    await call(`/v1/skills/${skill_id}/state`, { json: { state: 'deprecated' } })
    await look(scope)
    expect(await ended(id)).toMatchObject({ run_id: null, status: 'refused', reason: expect.stringContaining('is deprecated by now') })
  })

  test('is replicated to D1 after a crash, too; a late report changes nothing', async () => {
    const { scope, id } = await parked()
    const report = (status: string, ended_at: number | null) => {
      const run = { run_id: 'r', status, reason: null, outputs: {}, steps: [], compensation: [], cost_usd: 0, ended_at }
      return write(scope, `INSERT INTO outbox VALUES ('approved-runs', ?, ?)`, id, JSON.stringify(run))
    }
    const told = async () => {
      await crash(scope)
      await stubOf(scope).state()
      await runAlarm(stubOf(scope))
      const left = () => inObject(stubOf(scope), (state) => state.storage.sql.exec('SELECT * FROM outbox').toArray())
      await until(async () => (await left()).length === 0, 'D1 is current')
    }
    await report('failed', 1000)
    await told()
    expect(await runOf(id)).toMatchObject({ status: 'failed', ended_at: '1970-01-01T00:00:01.000Z' })
    await report('running', null)
    await told()
    expect(await runOf(id)).toMatchObject({ status: 'failed' })
  })
})

test('two of a skill that runs once at a time, approved at once, run one after the other', async () => {
  const scope = freshScope()
  const { activation } = twoSteps('x')
  const skill_id = await gated({ activation: { ...activation, max_concurrency: 1 } })
  const asked = [await propose(scope, skill_id), await propose(scope, skill_id, { inputs: { what: 'y' } })]
  for (const { approval_id } of asked) await decideUntold(approval_id ?? '')
  await look(scope)
  await isDone(scope)
  expect(did(scope)).toEqual([...BOTH, 'first y', 'second y'])
})

test('one that waits for the pace of its skill is refused once its time is over', async () => {
  const scope = freshScope()
  const { activation } = twoSteps('x')
  const skill_id = await gated({ activation: { ...activation, cooldown_s: 3600 } })
  const asked = [await propose(scope, skill_id), await propose(scope, skill_id, { inputs: { what: 'y' } })]
  for (const { approval_id } of asked) await decideUntold(approval_id ?? '')
  await look(scope)
  await until(async () => (await rows(scope)).length === 1, 'the second waits')
  await write(scope, `UPDATE jobs SET payload = json_set(payload, '$.expires_at', 1), due_at = 0 WHERE kind = 'approved-run'`)
  await look(scope)
  await isDone(scope)
  expect(did(scope)).toEqual(BOTH)
})

describe('four eyes', () => {
  test('nobody approves their own proposal but by a second key; they may take it back', async () => {
    const scope = freshScope()
    const skill_id = await gated()
    const [mine, other] = [await keyFor(['operator'], ['*'], 'olga'), await keyFor(['operator'], ['*'], 'peter')]
    const { approval_id } = await propose(scope, skill_id, {}, mine)
    const decide = (how: string, key: string, id = approval_id) => call(`/v1/approvals/${id}/${how}`, { json: {}, key })
    const refused = await decide('approve', mine)
    expect(refused).toMatchObject(problem(403, 'forbidden'))
    expect(refused.body.detail).toContain('cannot approve it: use another key')
    expect(await decide('approve', other)).toMatchObject({ status: 200, body: { requested_by: 'olga', decided_by: 'peter' } })
    await until(async () => did(scope).length === 2, 'it has run')
    const second = await propose(scope, skill_id, { inputs: { what: 'y' } }, mine)
    expect(await decide('reject', mine, second.approval_id)).toMatchObject({ status: 200 })
  })

  test.each([
    ['an admin does', ['admin', 'publisher'], {}],
    ['the manifest may allow it', ['operator'], { policy: { ...policy, self_approval: true } }],
  ])('%s', async (_, roles, changes) => {
    const scope = freshScope()
    const key = await keyFor(roles)
    const { approval_id } = await propose(scope, await gated(changes), {}, key)
    expect(await call(`/v1/approvals/${approval_id}/approve`, { json: {}, key })).toMatchObject({ status: 200 })
  })
})

describe('a skill that is deprecated', () => {
  const deprecate = (id: string) => call(`/v1/skills/${id}/state`, { json: { state: 'deprecated' } })

  test('is not approved, which says why; it may be rejected', async () => {
    const { scope, skill_id, decide } = await parked()
    await deprecate(skill_id)
    const refused = await decide('approve')
    expect(refused).toMatchObject(problem(409, 'skill-inactive'))
    expect(refused.body.detail).toContain(`${skill_id}@1.0.0 is no longer active`)
    expect(await decide('reject')).toMatchObject({ status: 200 })
    await isDone(scope)
    expect(did(scope)).toEqual([])
  })

  test('between the approval and its run is refused by the scope, and the log says why', async () => {
    const { scope, skill_id, id } = await parked()
    expect(await decideUntold(id)).toMatchObject({ ok: true })
    await deprecate(skill_id)
    await look(scope)
    await isDone(scope)
    expect(await entriesOf(stubOf(scope), 'skill-refused')).toMatchObject([{ reason: expect.stringContaining('is deprecated by now') }])
    expect(did(scope)).toEqual([])
  })
})

describe('a decision that its scope is handed', () => {
  const by = { by: 'olga', reason: 'looked at it', traceparent: null }
  const approved = { status: 'approved', ...by } as const
  const decisions = (scope: string) => entriesOf(stubOf(scope), 'approval-decided')

  test('is applied without another look in D1', async () => {
    const { scope, id } = await parked()
    // D1 still has the question as pending, so a poll would not apply it.
    await stubOf(scope).approvalDecided(id, approved)
    await isDone(scope)
    expect(await decisions(scope)).toMatchObject([{ approval_id: id, ...approved }])
    expect(did(scope)).toEqual(BOTH)
  })

  test('twice, or again by a poll, has the run happen once', async () => {
    const { scope, id } = await parked()
    await decideUntold(id)
    const handed = Array.from({ length: 3 }, () => stubOf(scope).approvalDecided(id, approved))
    await Promise.all([...handed, stubOf(scope).approvalDecided(id)])
    await isDone(scope)
    await stubOf(scope).approvalDecided(id, { ...approved, status: 'rejected' })
    await stubOf(scope).approvalDecided(id)
    expect(await decisions(scope)).toMatchObject([{ status: 'approved' }])
    expect(did(scope)).toEqual(BOTH)
  })

  test('on the approval of another scope changes nothing', async () => {
    const [one, other] = [await parked(), await parked()]
    await stubOf(one.scope).approvalDecided(other.id, approved)
    await stubOf(freshScope()).approvalDecided(other.id, approved)
    expect([await rows(one.scope), await rows(other.scope)]).toMatchObject([[{ approval_id: one.id }], [{ approval_id: other.id }]])
    expect([did(one.scope), did(other.scope)]).toEqual([[], []])
  })

  test('leaves the others to the poll, which finds what was missed', async () => {
    const { scope, skill_id, id, decide } = await parked()
    const missed = (await propose(scope, skill_id, { inputs: { what: 'y' } })).approval_id ?? ''
    await decideUntold(missed)
    await decide('reject')
    expect(await rows(scope)).toMatchObject([{ approval_id: missed }])
    expect(await decisions(scope)).toMatchObject([{ approval_id: id, status: 'rejected' }])
    await look(scope)
    await isDone(scope)
    expect(did(scope)).toEqual(['first y', 'second y'])
  })
})

describe('an approved run whose process dies', () => {
  const { plan } = twoSteps('x')
  const keyed = { plan: { ...plan, idempotence_key: 'twice:{{what}}' } }

  test.each(['before', 'after'] as const)('just %s the unit that takes the decision over, runs once', async (side) => {
    const { scope, decide } = await parked()
    const life = await live(scope, { at: 1, side })
    expect(await decide('approve')).toMatchObject({ status: 200 })
    await until(async () => life.buried, 'it has died')
    expect(did(scope)).toEqual([])
    await stubOf(scope).state()
    await runAlarm(stubOf(scope))
    await isDone(scope)
    expect(await entriesOf(stubOf(scope), 'approval-decided')).toMatchObject([{ status: 'approved', by: 'admin' }])
    expect(did(scope)).toEqual(BOTH)
  })

  test('before the scope was notified, is found by its alarm without a request', async () => {
    const { scope, id } = await parked()
    await decideUntold(id)
    await crash(scope)
    await stubOf(scope).state()
    await runAlarm(stubOf(scope))
    await isDone(scope)
    expect(did(scope)).toEqual(BOTH)
  })

  test('before D1 was asked, is asked for again under the same id', async () => {
    const { scope, id, decide } = await parked()
    const { status: _status, ...asked } = (await findApproval(env.DB, id, Date.now()))!
    await env.DB.prepare('DELETE FROM approvals WHERE id = ?').bind(id).run()
    await write(scope, `INSERT INTO outbox VALUES ('approvals', ?, ?)`, id, JSON.stringify(asked))
    await crash(scope)
    await stubOf(scope).poke()
    await until(async () => (await call(`/v1/approvals/${id}`)).status === 200, 'D1 has been asked')
    expect(await decide('approve')).toMatchObject({ status: 200 })
    await isDone(scope)
    expect(did(scope)).toEqual(BOTH)
  })

  test('once it is taken over and before its record, is begun', async () => {
    const { scope, id } = await parked()
    await decideUntold(id)
    await write(
      scope,
      `INSERT INTO jobs (kind, key, payload, locks, attempts) SELECT 'approved-run', approval_id, run, '[]', 1 FROM parked_runs`,
    )
    await write(scope, 'DELETE FROM parked_runs')
    await crash(scope)
    await isDone(scope)
    expect(did(scope)).toEqual(BOTH)
  })

  test('between its record and its first step, is resumed', async () => {
    const { scope, decide } = await parked(keyed)
    const gate = Promise.withResolvers<void>()
    effectGates.set(scope, gate.promise)
    await decide('approve')
    await until(async () => did(scope).length === 1, 'the first step has begun')
    await write(scope, 'DELETE FROM effects')
    await crash(scope)
    effectGates.delete(scope)
    gate.resolve()
    await isDone(scope)
    expect(did(scope)).toEqual(['first x', ...BOTH])
    expect(await applied(scope)).toMatchObject([{ status: 'ok' }])
  })

  test('in the middle of a step without a key, ends as unknown and is not begun again', async () => {
    const { scope, decide } = await parked()
    const gate = Promise.withResolvers<void>()
    effectGates.set(scope, gate.promise)
    await decide('approve')
    await until(async () => did(scope).length === 1, 'the first step has begun')
    await crash(scope)
    effectGates.delete(scope)
    gate.resolve()
    await isDone(scope)
    expect(did(scope)).toEqual(['first x'])
    expect(await applied(scope)).toMatchObject([{ status: 'unknown' }])
  })

  test('between its end and the end of its row, is not run again', async () => {
    const { scope, id, decide } = await parked()
    const [row] = await rows(scope)
    await decide('approve')
    await isDone(scope)
    await write(scope, `INSERT INTO jobs (kind, key, payload, locks, attempts) VALUES ('approved-run', ?, ?, '[]', 1)`, id, row?.['run'])
    await crash(scope)
    await isDone(scope)
    expect(did(scope)).toEqual(BOTH)
    expect(await applied(scope)).toHaveLength(1)
  })
})

describe('while D1, which holds the policy, is away', () => {
  const without = async (table: string, work: () => Promise<void>) => {
    await env.DB.exec(`ALTER TABLE ${table} RENAME TO ${table}_away`)
    try {
      await work()
    } finally {
      await env.DB.exec(`ALTER TABLE ${table}_away RENAME TO ${table}`)
    }
  }

  test('skills continue with the cached copy, and the log records when that begins and ends', async () => {
    const scope = freshScope()
    const id = await skill()
    await propose(scope, id)
    await without('artifact_versions', async () => {
      expect(await propose(scope, id, { inputs: { what: 'y' } })).toMatchObject({ status: 'ok' })
      expect(await propose(scope, id, { inputs: { what: 'z' } })).toMatchObject({ status: 'ok' })
    })
    await propose(scope, id)
    const told = [...(await entriesOf(stubOf(scope), 'skills-degraded')), ...(await entriesOf(stubOf(scope), 'skills-restored'))]
    expect(told.map(({ kind }) => kind)).toEqual(['skills-degraded', 'skills-restored'])
  })

  test('a run that needs an approval waits, and D1 is asked once it is available', async () => {
    const scope = freshScope()
    const skill_id = await gated()
    await propose(scope, await skill())
    let id: string | null = null
    await without('approvals', async () => {
      const result = await propose(scope, skill_id)
      expect(result.status).toBe('needs_approval')
      id = result.approval_id
    })
    await look(scope)
    await until(async () => (await call(`/v1/approvals/${id}`)).status === 200, 'D1 has been asked')
    await call(`/v1/approvals/${id}/approve`, { json: {} })
    await isDone(scope)
    expect(did(scope).slice(2)).toEqual(BOTH)
  })

  test('a decision that could not be read is found at the next look', async () => {
    const { scope, id } = await parked()
    await decideUntold(id)
    await without('approvals', () => look(scope))
    expect(did(scope)).toEqual([])
    await look(scope)
    await isDone(scope)
    expect(did(scope)).toEqual(BOTH)
  })
})

describe('an anchor, which a person has set,', () => {
  const anchors = [{ name: 'the vault', match: ['*VAULT*'], tools: ['act*'] }]
  const waits = 'waits for a person: touches the anchor the vault'
  const pending = async (scope: string) => (await call(`/v1/approvals?scope=${encodeURIComponent(scope)}&status=pending`)).body.items

  test.each(['enforce', 'observe'] as const)(
    'has a skill wait if what its steps get touches it, where the policy is to %s',
    async (policy_mode) => {
      const scope = freshScope()
      await stubOf(scope).configure({ anchors, policy_mode }, 'ops')
      const id = await skill()
      expect(await propose(scope, id, { inputs: { what: 'the door' } })).toMatchObject({ status: 'ok' })
      const asked = await propose(scope, id, { inputs: { what: 'the vault' } })
      expect(asked).toMatchObject({ status: 'needs_approval', reason: expect.stringContaining(waits) })
      expect(did(scope)).toEqual(['first the door', 'second the door'])
      await call(`/v1/approvals/${asked.approval_id}/approve`, { json: {} })
      await until(async () => did(scope).length === 4, 'the approved run is over')
      expect(did(scope).slice(2)).toEqual(['first the vault', 'second the vault'])
    },
  )

  test('stops the step of a run whose input only an earlier step knows', async () => {
    const scope = freshScope()
    await stubOf(scope).configure({ anchors: [{ name: 'the vault', match: ['then first vault'] }] }, 'ops')
    const { plan } = twoSteps('')
    const [first] = plan.steps
    const id = await skill({
      plan: {
        ...plan,
        steps: [
          { ...first, name: 'one' },
          { ...first, args: { text: 'then {{work.steps.one.did}}' } },
        ],
      },
    })
    expect(await propose(scope, id, { inputs: { what: 'vault' } })).toMatchObject({
      reason: expect.stringContaining('set policy.needs_approval_if'),
    })
    expect(did(scope)).toEqual(['first vault'])
  })

  test.each(['turn', 'reflex'])('has the call of a %s wait, which is made once if it is approved', async (who) => {
    const body = "return { action_type: 'call_tool', tool: 'act', args: { text: 'open the vault' } }"
    const { scope, stub } = who === 'reflex' ? await acting(body) : { scope: freshScope(), stub: null }
    const object = stub ?? stubOf(scope)
    const errors: string[] = []
    behaviours.set(scope, async (_, deps) => {
      await deps.call('act', { text: 'open the vault' }).catch((error: Error) => errors.push(error.message))
      return null
    })
    await object.configure({ anchors }, 'ops')
    for (const text of ['a', 'b']) await sendAndSettle(object, note(scope, text))
    const items = await until(async () => ((await pending(scope)).length > 0 ? pending(scope) : null), 'a person is asked')
    expect(items).toMatchObject([{ kind: 'call', skill_id: 'act', inputs: { text: 'open the vault', anchors: ['the vault'] }, run: null }])
    expect(did(scope)).toEqual([])
    const ends = [`: it waits for the approval ${items[0].id}`, ': it waits for an approval already']
    expect(errors).toEqual(who === 'reflex' ? [] : ends.map((end) => `act ${waits}${end}`))
    expect(await entriesOf(object, 'approval-requested')).toMatchObject([{ skill_id: 'act', anchors: ['the vault'] }])
    await call(`/v1/approvals/${items[0].id}/approve`, { json: {} })
    await until(async () => (await call(`/v1/approvals/${items[0].id}`)).body.run?.ended_at, 'D1 knows of its end')
    expect(did(scope)).toEqual(['open the vault'])
    expect((await call(`/v1/approvals/${items[0].id}`)).body.run).toMatchObject({ status: 'ok', steps: [{ tool: 'act', status: 'ok' }] })
    // A replay does not know what people decide. It does know that they were asked.
    const [first, second] = (await entriesOf(object, 'event-accepted')).map(({ trace_id }) => trace_id)
    const again = async (trace_id: string | undefined) =>
      (await call(`/v1/traces/${trace_id}/replay?scope=${encodeURIComponent(scope)}`, { json: { mode: 'pinned' } })).body
    expect(await again(first)).toMatchObject({ divergences: [], unknown: [{ kind: 'approval' }, { kind: 'effect' }] })
    expect(await again(second)).toMatchObject({ equivalent: true })
  })

  test('lets operators act, who are people, and calls of which no value matches', async () => {
    const scope = freshScope()
    await stubOf(scope).configure({ anchors }, 'ops')
    expect(await stubOf(scope).callTool({ tool: 'act', input: { text: 'the vault' }, key: 'k' }, 'olga')).toEqual({ ok: true })
    behaviours.set(scope, async (_, deps) => ({ did: await deps.call('act', { text: 'the door' }) }))
    await sendAndSettle(stubOf(scope), note(scope, 'a'))
    expect(did(scope)).toEqual(['the vault', 'the door'])
  })
})
