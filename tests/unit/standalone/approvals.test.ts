import { describe, expect, test } from 'vitest'
import { saveNoteWith, world } from './fixtures.ts'

const START = Date.parse('2026-11-21T05:00:00.000Z')

async function parked(approval_within_s = 60) {
  let now = START
  const here = world({
    now: () => now,
    skills: [saveNoteWith({ policy: { allow_roles: ['writer'], needs_approval_if: ['true'], approval_within_s } })],
  })
  const proposal = { skill_id: 'note.save', inputs: { title: 'milk' }, why: 'asked to' }
  const { approval_id } = await here.reflex.session().propose(proposal, { from: 'caller', roles: ['writer'], text: 'a note' })
  return { ...here, approvals: here.reflex.approvals, id: approval_id ?? '', pass: (ms: number) => (now += ms) }
}

describe('a run that waits, outside of a scope', () => {
  test('runs once, whoever approves at the same time', async () => {
    const { approvals, id, saved } = await parked()
    const results = await Promise.all([approvals.approve(id), approvals.approve(id)])
    expect(results).toMatchObject([{ status: 'ok' }, null])
    expect(approvals.reject(id)).toBe(false)
    expect(saved).toEqual(['milk'])
  })

  test('is gone once it is rejected', async () => {
    const { approvals, id, saved } = await parked()
    expect([approvals.reject(id), approvals.reject(id)]).toEqual([true, false])
    expect(await approvals.approve(id)).toBeNull()
    expect([approvals.list(), saved]).toEqual([[], []])
  })

  test('is asked for once, however often it is proposed, and waits among a hundred at most', async () => {
    const { approvals, id, reflex, pass } = await parked()
    const ask = (title: string) =>
      reflex.session().propose({ skill_id: 'note.save', inputs: { title }, why: '' }, { from: 'model', roles: ['writer'], text: 'a note' })
    expect(await ask('milk')).toMatchObject({ status: 'needs_approval', approval_id: id })
    for (let index = 1; index < 100; index++) await ask(`note ${index}`)
    expect(approvals.list()).toHaveLength(100)
    expect(await ask('one more')).toMatchObject({ status: 'refused', reason: expect.stringContaining('100 runs wait') })
    pass(60_000)
    expect(await ask('one more')).toMatchObject({ status: 'needs_approval' })
  })

  test('expires to the millisecond', async () => {
    const { approvals, id, saved, pass } = await parked()
    pass(59_999)
    expect(approvals.list()).toMatchObject([{ approval_id: id, expires_at: START + 60_000 }])
    pass(1)
    expect(approvals.list()).toEqual([])
    expect(await approvals.approve(id)).toBeNull()
    expect(saved).toEqual([])
  })

  test('that the gate refuses by then is not kept for ever', async () => {
    const { approvals, id, reflex } = await parked()
    reflex.registry.setState('note.save', '1.0.0', 'deprecated')
    expect(await approvals.approve(id)).toMatchObject({ status: 'refused' })
    expect(await reflex.resume()).toEqual([])
  })
})
