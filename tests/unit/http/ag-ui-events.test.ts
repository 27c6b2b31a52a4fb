import { expect, test } from 'vitest'
import type { LogEntry } from '../../../src/contract/log-entry.ts'
import { RunEvents } from '../../../src/features/protocols/http/ag-ui/ag-ui-events.ts'

const run = { threadId: 't', runId: 'r', event_id: 'e-1', approval_ids: [] }
const at = '2026-11-22T10:00:00.000Z'
const entry = (fields: Record<string, unknown>) =>
  ({ seq: 1, at, trace_id: 'a', span_id: 's', parent_id: null, event_ids: ['e-1'], ...fields }) as never as LogEntry
const ended = (fields: Record<string, unknown> = {}) =>
  entry({
    kind: 'event-ended',
    status: 'completed',
    attempts: 0,
    outcome: { by: 'turn', turn_id: 't-1', log_seq: 1, result: null },
    error: null,
    ...fields,
  })
const eventsOf = (entries: readonly LogEntry[], shows_work = true) => {
  const events = new RunEvents(run, { shows_work })
  return entries.flatMap((one) => events.of(one))
}
const call = { effect_id: 'f-1', tool: 'act', idempotence_key: null }

test('a tool call is shown with its arguments and its result, to viewers alone', () => {
  const entries = [
    entry({ kind: 'effect-started', ...call, input: { text: 'x' }, cause: { by: 'ops' } }),
    entry({ kind: 'effect-ended', ...call, status: 'ok', output: 7, error: null }),
  ]
  expect(eventsOf(entries)).toMatchObject([
    { type: 'TOOL_CALL_START', toolCallId: 'f-1', toolCallName: 'act' },
    { type: 'TOOL_CALL_ARGS', delta: '{"text":"x"}' },
    { type: 'TOOL_CALL_END' },
    { type: 'TOOL_CALL_RESULT', content: '7' },
  ])
  expect(eventsOf(entries, false)).toEqual([])
})

test('a reused call, which has no start in the log, is complete', () => {
  const types = eventsOf([entry({ kind: 'effect-ended', ...call, status: 'reused', input: {}, output: 7, error: null })]).map(
    ({ type }) => type,
  )
  expect(types).toEqual(['TOOL_CALL_START', 'TOOL_CALL_ARGS', 'TOOL_CALL_END', 'TOOL_CALL_RESULT'])
})

test('a call that begins again after a crash has an id of its own', () => {
  const began = entry({ kind: 'effect-started', ...call, input: {}, cause: { by: 'ops' } })
  const over = entry({ kind: 'effect-ended', ...call, input: {}, status: 'ok', output: 7, error: null })
  const ids = eventsOf([began, over, began, over]).flatMap(({ type, toolCallId }) =>
    type === 'TOOL_CALL_START' || type === 'TOOL_CALL_RESULT' ? [toolCallId] : [],
  )
  expect(ids).toEqual(['f-1', 'f-1', 'f-1:2', 'f-1:2'])
})

test('a run ends with no step open, and nothing follows its end', () => {
  const types = eventsOf([entry({ kind: 'turn-started', turn_id: 't-1' }), ended(), ended()]).map(({ type }) => type)
  expect(types).toEqual(['STEP_STARTED', 'STEP_FINISHED', 'RUN_FINISHED'])
})

test('the end of another event is not the end of the run', () => {
  expect(eventsOf([ended({ event_ids: ['e-2'] })])).toEqual([])
})

test.each([
  ['dead_lettered', { outcome: { by: 'failure', reason: 'x' }, error: 'the turn broke' }, { type: 'RUN_ERROR', message: 'the turn broke' }],
  ['cancelled', { outcome: { by: 'cancel', reason: 'x' } }, { type: 'RUN_FINISHED', outcome: { type: 'cancelled' } }],
  [
    'ignored',
    { outcome: { by: 'filter' } },
    { type: 'RUN_FINISHED', outcome: { type: 'success' }, result: { status: 'ignored', by: 'filter' } },
  ],
])('an event that is %s ends its run', (status, fields, last) => {
  expect(eventsOf([ended({ status, ...fields })]).at(-1)).toMatchObject(last)
})

test('a text that a turn returned is said, unless it replied', () => {
  const returned = ended({ outcome: { by: 'turn', turn_id: 't-1', log_seq: 1, result: 'hello' } })
  const reply = entry({ kind: 'reply-sent', span_id: 'p', turn_id: 't-1', reflex_id: null, content: 'hi' })
  const texts = (entries: LogEntry[]) => eventsOf(entries).flatMap(({ type, delta }) => (type === 'TEXT_MESSAGE_CONTENT' ? [delta] : []))
  expect(texts([returned])).toEqual(['hello'])
  expect(texts([reply, returned])).toEqual(['hi'])
})

test("a reflex's reply is said, though the log has it after the end of its event", () => {
  const fired = entry({ kind: 'reflex-fired', seq: 7, reflex_id: 'greet', version: 1, action: { action_type: 'reply', content: 'hi' } })
  const by_reflex = ended({ outcome: { by: 'reflex', reflex_id: 'greet', version: 1, log_seq: 7 } })
  const said = entry({ kind: 'reply-sent', span_id: 'p', turn_id: null, reflex_id: 'greet', content: 'hi' })
  const types = (entries: LogEntry[]) => eventsOf(entries).map(({ type, delta }) => delta ?? type)
  const whole = ['TEXT_MESSAGE_START', 'hi', 'TEXT_MESSAGE_END', 'RUN_FINISHED']
  expect(types([fired, by_reflex, said])).toEqual(whole)
  expect(types([fired, said, by_reflex])).toEqual(whole)
  const reused = entry({ ...fired, reused: true })
  expect(types([reused, by_reflex])).toEqual(['RUN_FINISHED'])
})

test('a skill that lacks input is an interrupt that asks for text', () => {
  const decided = entry({
    kind: 'skill-decided',
    proposal_id: 'p-1',
    skill_id: 'deploy',
    dry_run: false,
    decision: { verdict: 'clarify', reason: 'app is missing' },
  })
  expect(eventsOf([decided, ended()]).at(-1)).toMatchObject({
    outcome: { type: 'interrupt', interrupts: [{ id: 'clarify:p-1', reason: 'input_required', message: 'deploy: app is missing' }] },
  })
})

test.each([
  ['at once for calls of tools, which no run follows', undefined, ['RUN_FINISHED']],
  ['with the run of a skill', '1.0.0', []],
])('a run that resumes an approval ends %s', (_, version, types) => {
  const events = new RunEvents({ ...run, event_id: null, approval_ids: ['a-1'] }, { shows_work: false })
  const decided = { kind: 'approval-decided', approval_id: 'a-1', status: 'approved', skill_id: 'act', ...(version && { version }) }
  expect(events.of(entry(decided)).map(({ type }) => type)).toEqual(types)
})

test('a run that resumes two approvals ends with the later run, though it was put off for the earlier one', () => {
  const events = new RunEvents({ ...run, event_id: null, approval_ids: ['a-1', 'a-2'] }, { shows_work: false })
  const of = (span: string) => ({ parent_id: span, skill_id: 'act', proposal_id: 'p' })
  const approved = (id: string) =>
    entry({ kind: 'approval-decided', approval_id: id, span_id: id, status: 'approved', skill_id: 'act', version: '1.0.0' })
  const pace = { stages: [{ status: 'failed', checks: [{ check: 'concurrency', passed: false }] }] }
  const all = [
    approved('a-1'),
    approved('a-2'),
    entry({ kind: 'skill-decided', ...of('a-2'), decision: { verdict: 'refused', ...pace } }),
    entry({ kind: 'skill-applied', ...of('elsewhere'), status: 'ok' }),
    entry({ kind: 'skill-applied', ...of('a-1'), status: 'ok' }),
  ]
  expect(all.flatMap((one) => events.of(one))).toEqual([])
  expect(events.of(entry({ kind: 'skill-applied', ...of('a-2'), status: 'failed' }))).toMatchObject([
    {
      type: 'RUN_FINISHED',
      outcome: { type: 'success' },
      result: {
        answers: [
          { interrupt_id: 'a-1', status: 'ok' },
          { interrupt_id: 'a-2', status: 'failed' },
        ],
      },
    },
  ])
})

const TOKEN = `ghp_${'a1B2'.repeat(9)}`
const started = entry({ kind: 'turn-started', turn_id: 't-1' })
const replied = (content: string) => entry({ kind: 'reply-sent', turn_id: 't-1', reflex_id: null, content })
const parts = (...given: [from: number, content: string][]) => given.map(([from, content]) => ({ turn_id: 't-1', from, content }))

test.each([
  ['is completed by its entry', parts([0, 'he'], [2, 'll']), [replied('hello')], ['he', 'll', 'o']],
  ['with a gap is completed by its entry', parts([0, 'he'], [4, 'o']), [replied('hello')], ['he', 'llo']],
  ['that began unseen comes from its entry', parts([2, 'llo']), [replied('hello')], ['hello']],
  ['of two replies is not repeated', parts([0, 'one'], [3, '\n\n'], [5, 'two']), [replied('one'), replied('two')], ['one', '\n\n', 'two']],
  ['with a pasted secret is not repeated', parts([0, 'it is '], [6, TOKEN]), [replied('it is [secret: token]')], ['it is ', TOKEN]],
  ['that differs from its entry is followed by it', parts([0, 'draft']), [replied('final')], ['draft', 'final']],
  ['that was not replied stays', parts([0, 'draft']), [], ['draft']],
])('a streamed text %s, and each message ends', (_, streamed, entries, deltas) => {
  const events = new RunEvents(run, { shows_work: false })
  const made = [
    events.of(started),
    ...streamed.map((one) => events.part(one)),
    ...[...entries, ended()].map((one) => events.of(one)),
  ].flat()
  expect(made.flatMap(({ delta }) => (delta === undefined ? [] : [delta]))).toEqual(deltas)
  const idsOf = (kind: string) => made.flatMap(({ type, messageId }) => (type === kind ? [messageId] : []))
  expect(idsOf('TEXT_MESSAGE_END')).toEqual(idsOf('TEXT_MESSAGE_START'))
  expect(new Set(idsOf('TEXT_MESSAGE_START')).size).toBe(idsOf('TEXT_MESSAGE_START').length)
})

test('a text that precedes the entry of its turn follows it', () => {
  const events = new RunEvents(run, { shows_work: true })
  for (const one of parts([0, 'he'], [2, 'll'])) expect(events.part(one)).toEqual([])
  expect(events.of(started).map(({ delta, type }) => delta ?? type)).toEqual(['STEP_STARTED', 'TEXT_MESSAGE_START', 'hell'])
  expect(events.part({ turn_id: 't-1', from: 4, content: 'o' })).toMatchObject([{ delta: 'o' }])
})

test('text of the turn of another run is not sent', () => {
  expect(new RunEvents(run, { shows_work: true }).part({ turn_id: 't-2', from: 0, content: 'x' })).toEqual([])
})

test('the first state is a snapshot, later ones are changes as a JSON Patch', () => {
  const turn = (scratch: unknown) => entry({ kind: 'turn-ended', turn_id: 't-1', scratch })
  const states = [
    { count: 1, 'a/b~': [1], old: true },
    { count: 2, 'a/b~': [1, 2] },
    { count: 2, 'a/b~': [1, 2] },
  ]
  expect(eventsOf(states.map(turn))).toMatchObject([
    { type: 'STATE_SNAPSHOT', snapshot: states[0] },
    {
      type: 'STATE_DELTA',
      delta: [
        { op: 'remove', path: '/old' },
        { op: 'add', path: '/count', value: 2 },
        { op: 'add', path: '/a~1b~0', value: [1, 2] },
      ],
    },
  ])
})
