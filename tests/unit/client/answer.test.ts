import { readUIMessageStream, type UIMessageChunk } from 'ai'
import { describe, expect, test } from 'vitest'
import { ChatAnswer } from '../../../client/ai-sdk/answer.ts'
import type { LogEntry } from '../../../client/index.ts'

let seq = 0
const entry = (fields: object): LogEntry => ({ seq: (seq += 1), at: '', event_ids: ['q'], ...fields }) as unknown as LogEntry
const started = (turn_id: string) => entry({ kind: 'turn-started', turn_id })
const replied = (turn_id: string | null, content: string) => entry({ kind: 'reply-sent', turn_id, content })
const turnEnded = (turn_id: string, status: string) => entry({ kind: 'turn-ended', turn_id, status })
const completed = () => entry({ kind: 'event-ended', status: 'completed', outcome: { by: 'turn' }, error: null })
const delta = (turn_id: string, content: string, from?: 0) => ({ turn_id, content, ...(from === 0 && { from }) })
type Input = LogEntry | ReturnType<typeof delta> | { turn_id: null; event_id: string; content: string }

function chunksOf(inputs: Input[], answer = new ChatAnswer('q')): UIMessageChunk[] {
  return [...answer.begin(), ...inputs.flatMap((input) => ('seq' in input ? answer.entry(input) : answer.delta(input)))]
}

/** The parts of the message, as a chat shows them. */
async function shown(inputs: Input[]): Promise<unknown[]> {
  const stream = new ReadableStream<UIMessageChunk>({
    start(controller) {
      for (const chunk of chunksOf(inputs)) controller.enqueue(chunk)
      controller.close()
    },
  })
  let parts: unknown[] = []
  for await (const message of readUIMessageStream({ stream }))
    parts = message.parts.flatMap((part): unknown[] => {
      if (part.type === 'text') return [part.text]
      return part.type === 'dynamic-tool' ? [{ [part.toolName]: part.output ?? part.errorText ?? null }] : []
    })
  return parts
}

const call = (effect_id: string) =>
  entry({ kind: 'effect-started', effect_id, tool: 'look', input: { at: 'sky' }, cause: { turn_id: 't' } })
const called = (effect_id: string, fields: object = { status: 'ok', output: 'blue' }) =>
  entry({ kind: 'effect-ended', effect_id, tool: 'look', error: null, ...fields })

describe('the answer to a message', () => {
  test('is streamed, and its reply in the log adds nothing', async () => {
    expect(await shown([started('t'), delta('t', 'Hel'), delta('t', 'lo'), replied('t', 'Hello'), completed()])).toEqual(['Hello'])
  })

  test('is the reply where nothing was streamed, or not everything', async () => {
    expect(await shown([started('t'), replied('t', 'Hello'), completed()])).toEqual(['Hello'])
    expect(await shown([started('t'), delta('t', 'Hel'), replied('t', 'Hello'), completed()])).toEqual(['Hello'])
  })

  test('is the reply where the streamed text differs', async () => {
    expect(await shown([started('t'), delta('t', 'Hxl'), replied('t', 'Hello'), completed()])).toEqual(['Hello'])
  })

  test('begins again after a turn that failed or was lost', async () => {
    const again = [started('u'), delta('u', 'Better'), replied('u', 'Better.'), completed()]
    expect(await shown([started('t'), delta('t', 'Half an'), turnEnded('t', 'lost'), ...again])).toEqual(['Better.'])
    expect(await shown([started('t'), delta('t', 'Half an'), replied('t', 'Half'), turnEnded('t', 'failed'), ...again])).toEqual([
      'Better.',
    ])
    expect(await shown([started('t'), delta('t', 'Half an'), ...again])).toEqual(['Better.'])
  })

  test('continues from the text so far of a new connection', async () => {
    expect(await shown([delta('t', 'Hello wor', 0), started('t'), delta('t', 'ld'), replied('t', 'Hello world'), completed()])).toEqual([
      'Hello world',
    ])
    expect(await shown([started('t'), delta('t', 'He'), delta('t', 'Hello', 0), delta('t', '!'), completed()])).toEqual(['Hello!'])
  })

  test('joins several replies of one turn', async () => {
    const both = [delta('t', 'one'), delta('t', '\n\n'), delta('t', 'two'), replied('t', 'one'), replied('t', 'two')]
    expect(await shown([started('t'), ...both, completed()])).toEqual(['one\n\ntwo'])
    expect(await shown([started('t'), replied('t', 'one'), replied('t', 'two'), completed()])).toEqual(['one\n\ntwo'])
  })

  test('shows tool calls between its paragraphs, whether the agent replies all of them or the last', async () => {
    const steps = [started('t'), delta('t', 'Let me see.'), call('e'), called('e'), delta('t', '\n\n'), delta('t', 'Blue.')]
    const parts = ['Let me see.', { look: 'blue' }, 'Blue.']
    expect(await shown([...steps, replied('t', 'Let me see.\n\nBlue.'), completed()])).toEqual(parts)
    expect(await shown([...steps, replied('t', 'Blue.'), completed()])).toEqual(parts)
  })

  test('keeps the calls of a turn that is tried again', async () => {
    const first = [started('t'), call('e'), called('e'), delta('t', 'Blu'), turnEnded('t', 'failed')]
    const second = [started('u'), called('f', { status: 'reused', input: {}, output: 'blue' }), replied('u', 'Blue.'), completed()]
    expect(await shown([...first, ...second])).toEqual([{ look: 'blue' }, { look: 'blue' }, 'Blue.'])
    expect(await shown([started('t'), call('e'), called('e', { status: 'failed', error: 'no sky' }), completed()])).toEqual([
      { look: 'no sky' },
    ])
  })

  test('of a reflex comes without a turn', async () => {
    const inputs = [{ turn_id: null, event_id: 'q', content: 'Nine.' }, replied(null, 'Nine.'), completed()]
    expect(await shown(inputs)).toEqual(['Nine.'])
  })

  test('is not mixed with the answers to others', async () => {
    const other = { event_ids: ['other'] }
    const foreign = [
      entry({ ...other, kind: 'turn-started', turn_id: 'o' }),
      delta('o', 'not for you'),
      entry({ ...other, kind: 'reply-sent', turn_id: 'o', content: 'not for you' }),
      entry({ ...other, kind: 'event-ended', status: 'completed' }),
      { turn_id: null, event_id: 'other', content: 'nor this' },
    ] as const
    expect(await shown([...foreign, started('t'), delta('t', 'Hi'), replied('t', 'Hi'), completed()])).toEqual(['Hi'])
  })

  test('ends as the event ended', () => {
    const last = (fields: object) => chunksOf([started('t'), entry({ kind: 'event-ended', error: null, ...fields })]).at(-1)
    expect(last({ status: 'dead_lettered', error: 'the model is away' })).toEqual({ type: 'error', errorText: 'the model is away' })
    expect(last({ status: 'cancelled', outcome: { by: 'cancel', reason: 'enough' } })).toEqual({ type: 'abort', reason: 'enough' })
    expect(last({ status: 'ignored', outcome: { by: 'filter' } })).toEqual({ type: 'finish', finishReason: 'stop' })
  })

  test('names an approval that waits', () => {
    const asked = entry({ kind: 'approval-requested', approval_id: 'a', skill_id: 's', version: '1', reason: 'risk' })
    expect(chunksOf([asked]).at(-1)).toMatchObject({ type: 'data-approval', id: 'a', data: { approval_id: 'a', skill_id: 's' } })
  })
})
