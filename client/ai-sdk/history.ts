import { readUIMessageStream, type UIMessage, type UIMessageChunk } from 'ai'
import type { LogEntry } from '../../src/contract/log-entry.ts'
import type { Scope } from '../scope.ts'
import { ChatAnswer } from './answer.ts'

/** The number of log entries in which a chat looks for its past. */
export const LOOK_BACK = 2000
const AT_ONCE = 8

const isMessage = (entry: LogEntry): boolean => entry.kind === 'event-accepted' && entry.event_type === 'ws.message'

async function recent(scope: Scope): Promise<{ entries: LogEntry[]; last_seq: number }> {
  const { last_seq } = await scope.state()
  const entries: LogEntry[] = []
  for await (const entry of scope.replay({ after: Math.max(0, last_seq - LOOK_BACK) })) entries.push(entry)
  return { entries, last_seq: entries.at(-1)?.seq ?? last_seq }
}

/**
 * The newest message without an answer, and the `seq` before it. Answers after `read` count as
 * missing: the reader does not have them.
 */
export async function unanswered(scope: Scope, read = Infinity): Promise<{ event_id: string; after: number } | null> {
  const { entries } = await recent(scope)
  const open = new Map<string, number>()
  for (const entry of entries) {
    if (isMessage(entry)) for (const id of entry.event_ids) open.set(id, entry.seq - 1)
    if (entry.kind === 'event-ended' && entry.seq <= read) for (const id of entry.event_ids) open.delete(id)
  }
  const [newest] = Array.from(open).slice(-1)
  return newest ? { event_id: newest[0], after: newest[1] } : null
}

/** The messages of people and the complete answers to them, oldest first. */
export async function readMessages(scope: Scope): Promise<{ messages: UIMessage[]; last_seq: number }> {
  const { entries, last_seq } = await recent(scope)
  const ids = entries.filter(isMessage).flatMap(({ event_ids }) => event_ids)
  const messages: UIMessage[] = []
  for (let index = 0; index < ids.length; index += AT_ONCE) {
    const some = await Promise.all(ids.slice(index, index + AT_ONCE).map((id) => exchange(scope, id, entries)))
    messages.push(...some.flat())
  }
  return { messages, last_seq }
}

async function exchange(scope: Scope, id: string, entries: readonly LogEntry[]): Promise<UIMessage[]> {
  const { event } = await scope.event(id)
  const question: UIMessage = { id, role: 'user', parts: [{ type: 'text', text: 'content' in event ? String(event.content) : '' }] }
  const answer = new ChatAnswer(id)
  const chunks = [...answer.begin(), ...entries.flatMap((entry) => answer.entry(entry))]
  if (!answer.done) return [question]
  const said = await messageOf(chunks.filter(({ type }) => type !== 'error'))
  return said && said.parts.some(({ type }) => type !== 'step-start') ? [question, said] : [question]
}

async function messageOf(chunks: UIMessageChunk[]): Promise<UIMessage | undefined> {
  const stream = new ReadableStream<UIMessageChunk>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk)
      controller.close()
    },
  })
  let last: UIMessage | undefined
  for await (const state of readUIMessageStream({ stream })) last = state
  return last
}
