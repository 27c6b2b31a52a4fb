import { expect, test } from 'vitest'
import type { LogEntry } from '../../../src/contract/log-entry.ts'
import { messageEntry, messageRun } from '../../../src/traces/message-run.ts'

const entry = (kind: string, fields: Record<string, unknown> = {}) => ({ seq: 1, kind, event_ids: ['e-1'], ...fields }) as never as LogEntry
const asked = (id: string) => entry('approval-requested', { approval_id: id, skill_id: 'network-block' })
const decided = (id: string, status: string) => entry('approval-decided', { approval_id: id, status, version: '1.0.0' })
const proposed = (decision: unknown) => entry('skill-decided', { proposal_id: 'p-1', decision })

test('a run waits for the newest approval that is not decided', () => {
  const { approval } = messageRun([asked('a-1'), asked('a-2'), asked('a-3'), decided('a-3', 'rejected')])
  expect(approval?.approval_id).toBe('a-2')
})

test.each(['skill-applied', 'skill-refused', 'skill-reused'])('an approved run works until %s', (kind) => {
  expect(messageRun([asked('a-1'), decided('a-1', 'approved')]).is_approved).toBe(true)
  expect(messageRun([asked('a-1'), decided('a-1', 'approved'), entry(kind)]).is_approved).toBe(false)
})

test('an approved call of a tool leaves nothing to wait for: no run follows', () => {
  const calls = entry('approval-decided', { approval_id: 'a-1', status: 'approved' })
  expect(messageRun([asked('a-1'), calls])).toMatchObject({ approval: null, is_approved: false })
})

test('a question stays until another proposal is decided', () => {
  const clarify = { verdict: 'clarify', questions: [{ question: 'Which host?' }, null, { question: 7 }] }
  expect(messageRun([proposed(clarify)]).question?.questions).toEqual(['Which host?'])
  expect(messageRun([proposed(clarify), proposed({ verdict: 'allow' })]).question).toBeNull()
})

test.each([
  ['skill-applied', { status: 'failed' }, 'failed'],
  ['skill-refused', {}, 'refused'],
  ['skill-reused', { status: 'ok' }, 'reused'],
])('a run that ended with %s has its status', (kind, fields, status) => {
  expect(messageEntry(entry(kind, fields))).toMatchObject({ kind: 'run-ended', status })
})

test('a proposal without a decision, and a kind that no sender of a message sees, are no mistake', () => {
  expect(messageEntry(proposed(undefined))).toMatchObject({ verdict: undefined, questions: [] })
  expect(messageEntry(entry('model-called'))).toBeNull()
})
