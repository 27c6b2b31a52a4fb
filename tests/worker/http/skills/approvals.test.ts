import { env } from 'cloudflare:workers'
import { describe, expect, test, vi } from 'vitest'
import type { ApprovalRequest } from '../../../../src/contract/approval.ts'
import { sweep } from '../../../support/sweep.ts'
import {
  decideApproval,
  expireApprovals,
  findApproval,
  insertApproval,
  withdrawApproval,
} from '../../../../src/features/approvals/store/approvals.ts'
import { call, callWith, keyFor, problem } from '../../../support/http.ts'
import { freshScope } from '../../../support/scopes.ts'

const HOUR = 3_600_000

async function ask(fields: Partial<ApprovalRequest> = {}): Promise<ApprovalRequest> {
  const now = Date.now()
  const request: ApprovalRequest = {
    id: crypto.randomUUID(),
    scope: freshScope('approvals'),
    kind: 'run',
    skill_id: 'deploy',
    version: '1.0.0',
    manifest_hash: 'm',
    inputs_hash: 'i',
    inputs: { app_name: 'payments', nested: { deep: [1, null] } },
    why: 'goal=deploy',
    requested_by: 'ws:alice',
    requested_key: null,
    self_approval: false,
    created_at: now,
    expires_at: now + HOUR,
    ...fields,
  }
  await insertApproval(env.DB, request)
  return request
}

/** Scopes that record their notifications. */
const listening = () => {
  const told: string[] = []
  const verdicts: unknown[] = []
  const getByName = (scope: string) => ({
    async approvalDecided(id: string, verdict: unknown) {
      told.push(`${scope} ${id}`)
      verdicts.push(verdict)
    },
  })
  return { told, verdicts, bindings: { SCOPE: { getByName } } }
}
const decide = (
  how: 'approve' | 'reject',
  id: string,
  { key, json, ...bindings }: { key?: string; json?: unknown; SCOPE?: unknown } = {},
) =>
  callWith({ ...listening().bindings, ...bindings }, `/v1/approvals/${id}/${how}`, {
    method: 'POST',
    ...(json === undefined ? {} : { json }),
    ...(key === undefined ? {} : { key }),
  })
const iso = (ms: number) => new Date(ms).toISOString()

describe('an approval', () => {
  test('is shown with all that it is about, and asked for twice it is one', async () => {
    const request = await ask()
    await insertApproval(env.DB, { ...request, why: 'again' })
    const { created_at, expires_at } = request
    expect((await call(`/v1/approvals/${request.id}`)).body).toEqual({
      ...request,
      created_at: iso(created_at),
      expires_at: iso(expires_at),
      status: 'pending',
      decided_by: null,
      decided_at: null,
      reason: null,
      edits: null,
      traceparent: null,
      run: null,
    })
  })

  test.each([
    ['approve', 'approved'],
    ['reject', 'rejected'],
  ] as const)('is decided (%s), and its scope is notified', async (how, status) => {
    const { id, scope } = await ask()
    const { told, verdicts, bindings } = listening()
    const key = await keyFor(['operator'], ['approvals/*'], 'olga')
    const answer = await decide(how, id, { ...bindings, key, json: { reason: 'looked at it' } })
    expect(answer).toMatchObject({
      status: 200,
      body: { id, status, decided_by: 'olga', reason: 'looked at it', decided_at: expect.any(String) },
    })
    expect(told).toEqual([`${scope} ${id}`])
    expect(verdicts).toEqual([{ status, by: 'olga', reason: 'looked at it', traceparent: null }])
    expect(await findApproval(env.DB, id, Date.now())).toMatchObject({ status, decided_by: 'olga', reason: 'looked at it' })
  })

  test('is decided once', async () => {
    const { id } = await ask()
    expect(await decide('approve', id)).toMatchObject({ status: 200, body: { reason: null } })
    const { told, bindings } = listening()
    const refused = await decide('reject', id, bindings)
    expect(refused).toMatchObject(problem(409, 'already-decided'))
    expect(refused.body.detail).toMatch(/^It was approved by admin at 20/)
    expect(told).toEqual([])
    expect(await decide('approve', id)).toMatchObject(problem(409, 'already-decided'))
  })

  test('is decided once though many decide at once', async () => {
    const { id, scope } = await ask()
    const { told, bindings } = listening()
    const all = await Promise.all(Array.from({ length: 10 }, (_, index) => decide(index % 2 === 0 ? 'approve' : 'reject', id, bindings)))
    expect(all.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(all.filter(({ status }) => status === 409)).toHaveLength(9)
    expect(told).toEqual([`${scope} ${id}`])
    const won = all.find(({ status }) => status === 200)
    expect((await call(`/v1/approvals/${id}`)).body).toEqual(won?.body)
  })

  test('holds even if its scope cannot be notified', async () => {
    const warned = vi.spyOn(console, 'warn').mockImplementation(() => {})
    const { id, scope } = await ask()
    const away = { getByName: () => ({ approvalDecided: () => Promise.reject(new Error('the scope is away')) }) }
    const answer = await decide('approve', id, { SCOPE: away })
    const texts = warned.mock.calls.map(([text]) => String(text))
    warned.mockRestore()
    expect(answer).toMatchObject({ status: 200, body: { status: 'approved' } })
    expect(texts).toEqual([expect.stringContaining(scope)])
  })

  test.each([{ reason: '' }, { because: 'x' }, []])('is not decided by %j', async (json) => {
    const { id } = await ask()
    expect(await decide('approve', id, { json })).toMatchObject(problem(400))
    expect(await findApproval(env.DB, id, Date.now())).toMatchObject({ status: 'pending' })
  })

  test.each(['approve', 'reject'] as const)('that is not there is not decided (%s)', async (how) => {
    expect(await decide(how, 'none')).toMatchObject(problem(404))
    expect(await call('/v1/approvals/none')).toMatchObject(problem(404))
  })
})

describe('an approval that has expired', () => {
  test('that its scope withdraws is withdrawn, although somebody approved it meanwhile; a rejection stays', async () => {
    const withdrawn = { at: Date.now(), reason: 'the evidence has changed' }
    for (const [how, status] of [
      ['approve', 'withdrawn'],
      ['reject', 'rejected'],
    ] as const) {
      const { id } = await ask()
      await decide(how, id)
      await withdrawApproval(env.DB, { id, withdrawn })
      expect(await findApproval(env.DB, id, Date.now())).toMatchObject({ status })
    }
  })

  test('is not decided, before that is written and after', async () => {
    const { id } = await ask({ expires_at: Date.now() - 1 })
    expect((await call(`/v1/approvals/${id}`)).body.status).toBe('expired')
    expect(await decide('approve', id)).toMatchObject(problem(409, 'approval-expired'))
    expect(await expireApprovals(env.DB, Date.now())).toBe(1)
    expect(await expireApprovals(env.DB, Date.now())).toBe(0)
    expect(await decide('reject', id)).toMatchObject(problem(409, 'approval-expired'))
    expect((await call(`/v1/approvals/${id}`)).body).toMatchObject({ status: 'expired', decided_by: null })
  })

  test('expires to the millisecond', async () => {
    const { id } = await ask({ expires_at: 1000 })
    const at = (now: number) =>
      decideApproval(env.DB, { id, status: 'approved', by: { key_id: 'k-1', name: 'olga', is_admin: false }, reason: null, now })
    expect(await at(1000)).toMatchObject({ ok: false, reason: 'expired' })
    expect(await at(999)).toMatchObject({ ok: true, approval: { status: 'approved', decided_at: 999 } })
    // A decision outlives its time.
    expect(await findApproval(env.DB, id, 2000)).toMatchObject({ status: 'approved' })
  })

  test('is written down by the sweep, and no other is', async () => {
    const [old, decided, open] = [await ask({ expires_at: 5 }), await ask({ expires_at: Date.now() + 10_000 }), await ask()]
    await decide('reject', decided.id)
    expect((await sweep(env, Date.now() + 20_000)).steps['expiring approvals']).toBe(1)
    const { results } = await env.DB.prepare('SELECT id, status FROM approvals WHERE id IN (?, ?, ?)')
      .bind(old.id, decided.id, open.id)
      .all()
    expect(new Map(results.map(({ id, status }) => [id, status]))).toEqual(
      new Map([
        [old.id, 'expired'],
        [decided.id, 'rejected'],
        [open.id, 'pending'],
      ]),
    )
  })
})

describe('an approval that is old', () => {
  const DAY = 24 * HOUR

  test('is forgotten by the sweep once it is decided or has expired, after 30 days', async () => {
    const now = Date.now()
    const at = (days: number) => ({ created_at: now - days * DAY, expires_at: now + HOUR })
    const [old, open, young] = [await ask(at(31)), await ask(at(31)), await ask(at(29))]
    const lapsed = await ask({ ...at(31), expires_at: now - 30 * DAY })
    for (const { id } of [old, young]) await decide('reject', id)
    expect((await sweep(env, now)).steps).toMatchObject({ 'expiring approvals': 1, 'forgetting approvals': 2 })
    const statuses = [old, lapsed, open, young].map(async ({ id }) => (await call(`/v1/approvals/${id}`)).status)
    expect(await Promise.all(statuses)).toEqual([404, 404, 200, 200])
  })
})

describe('approvals', () => {
  test('are there for keys that cover their scopes, and for no other', async () => {
    const { id, scope } = await ask({ scope: freshScope('team-a') })
    const elsewhere = await keyFor(['admin'], ['team-b/*'])
    expect(await call(`/v1/approvals/${id}`, { key: elsewhere })).toMatchObject(problem(404))
    expect(await decide('approve', id, { key: elsewhere })).toMatchObject(problem(404))
    expect((await call(`/v1/approvals?scope=${encodeURIComponent(scope)}`, { key: elsewhere })).body.items).toEqual([])
    const here = await keyFor(['operator'], ['team-a/*'])
    expect((await call('/v1/approvals?limit=1000', { key: here })).body.items).toMatchObject([{ id }])
    expect(await decide('approve', id, { key: here })).toMatchObject({ status: 200 })
  })

  test('are listed by status, as it is now', async () => {
    const scope = freshScope('approvals')
    const [open, approved, rejected, overdue] = [
      await ask({ scope }),
      await ask({ scope }),
      await ask({ scope }),
      await ask({ scope, expires_at: 1 }),
    ]
    await decide('approve', approved.id)
    await decide('reject', rejected.id)
    const listed = async (query: string) => {
      const { body } = await call(`/v1/approvals?scope=${encodeURIComponent(scope)}${query}`)
      return body.items.map((item: { id: string; status: string }) => `${item.id} ${item.status}`)
    }
    const wanted = { pending: open, approved, rejected, expired: overdue }
    for (const [status, { id }] of Object.entries(wanted)) expect(await listed(`&status=${status}`)).toEqual([`${id} ${status}`])
    expect(await listed('')).toHaveLength(4)
    expect(await call('/v1/approvals?status=open')).toMatchObject(problem(400))
  })

  test('are listed newest first, page by page, none twice, whatever their ids', async () => {
    const scope = freshScope('approvals')
    const ids = ['a.b', 'a', 'c', 'd', 'e'].map((letter) => `${letter}-${crypto.randomUUID()}`)
    for (const [index, id] of ids.entries()) await ask({ id, scope, created_at: 1000 + Math.floor(index / 2) })
    const seen: string[] = []
    let cursor: string | null = ''
    for (let pages = 0; pages < 9 && cursor !== null; pages += 1) {
      const { body } = await call(`/v1/approvals?scope=${encodeURIComponent(scope)}&limit=2${cursor && `&cursor=${cursor}`}`)
      expect(body.items.length).toBeLessThanOrEqual(2)
      seen.push(...body.items.map(({ id }: { id: string }) => id))
      cursor = body.next_cursor
    }
    const [ab = '', a = '', c = '', d = '', e = ''] = ids
    expect(seen).toEqual([e, ...[c, d].toSorted().toReversed(), ...[ab, a].toSorted().toReversed()])
    expect(await call('/v1/approvals?cursor=x')).toMatchObject(problem(400))
  })
})
