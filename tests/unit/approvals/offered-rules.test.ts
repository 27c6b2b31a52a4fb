import { describe, expect, test } from 'vitest'
import { offeredRules } from '../../../src/features/approvals/http/offered-rules.ts'

type Decided = Parameters<typeof offeredRules>[0][number]
const asked = (nth: number, more: Partial<Decided> & { in?: string } = {}): Decided => {
  const { in: text = 'http.inbox.read', ...rest } = more
  const origins = [{ argument: 'to', value: `${nth}@example.com`, origin: `text:${text}.body`, in: text }]
  const times = { id: `a${nth}`, created_at: nth * 1000 }
  return { kind: 'call', skill_id: 'http.mail.send', inputs: { to: '', origins }, status: 'approved', edits: null, ...times, ...rest }
}
const rule = { in: 'http.inbox.read', what: ['to'], tools: ['http.mail.send'] }

describe('a rule', () => {
  test('is offered where people approved what stood in one kind of text three times, with its evidence', () => {
    const given = [{ in: 'ssh.line', what: ['ip'] }]
    expect(offeredRules([asked(3), asked(2), asked(1)], given)).toEqual([
      {
        says: 'What stands in texts of `http.inbox.read` may be `to` of `http.mail.send`, without a question.',
        rule,
        approved: 3,
        values: ['3@example.com', '2@example.com', '1@example.com'],
        approvals: ['a3', 'a2', 'a1'],
        since: '1970-01-01T00:00:01.000Z',
        patch: { trusted_text: [...given, rule] },
      },
    ])
  })

  test('counts each call of a question about several, unless a person changed it or left it out', () => {
    const of = (nth: number, edits: Decided['edits'] = null) => {
      const { inputs, skill_id: tool } = asked(nth)
      const other = { tool: 'http.pay', origins: inputs['origins'] }
      return asked(nth, {
        kind: 'calls',
        skill_id: `${tool}, http.pay`,
        inputs: { calls: [{ tool, origins: inputs['origins'] }, other] },
        edits,
      })
    }
    expect(offeredRules([of(3), of(2), of(1)], []).map(({ rule: { tools } }) => tools)).toEqual([['http.mail.send'], ['http.pay']])
    expect(offeredRules([of(4, { 2: null }), of(3), of(2), of(1)], []).map(({ rule: { tools } }) => tools)).toEqual([['http.mail.send']])
  })

  test.each<[string, Decided[]]>([
    ['two approvals are no habit', [asked(2), asked(1)]],
    ['somebody rejected one', [asked(4, { status: 'rejected' }), asked(3), asked(2), asked(1)]],
    ['somebody changed the inputs of one', [asked(4, { edits: { to: 'me@example.com' } }), asked(3), asked(2), asked(1)]],
    ['the texts are of several kinds', [asked(3, { in: 'web.page' }), asked(2), asked(1)]],
    ['the tools are several', [asked(3, { skill_id: 'http.pay' }), asked(2), asked(1)]],
    [
      'the value stood nowhere',
      [1, 2, 3].map((nth) => asked(nth, { inputs: { origins: [{ argument: 'to', value: 'x', origin: 'model' }] } })),
    ],
    ['the questions were about runs', [1, 2, 3].map((nth) => asked(nth, { kind: 'run' }))],
  ])('is not if %s', (_, decided) => {
    expect(offeredRules(decided, [])).toEqual([])
  })

  test('is not if it is set already', () => {
    const decided = [asked(3), asked(2), asked(1)]
    expect(offeredRules(decided, [rule])).toEqual([])
    expect(offeredRules(decided, [{ in: 'http.inbox.read', what: ['to'] }])).toEqual([])
    expect(offeredRules(decided, [{ ...rule, tools: ['http.pay'] }])).toHaveLength(1)
  })
})
