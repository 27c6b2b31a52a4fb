import { type ChatTransport, type UIMessage, type UIMessageChunk, readUIMessageStream } from 'ai'
import { ReflexError } from '../api.ts'
import type { Scope } from '../scope.ts'
import { ChatAnswer, type Partials } from './answer.ts'
import type { LogEntry } from '../../src/contract/log-entry.ts'

/** The number of log entries in which a chat looks for its past. */
const LOOK_BACK = 2000
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
async function unanswered(scope: Scope, read = Infinity): Promise<{ event_id: string; after: number } | null> {
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
async function readMessages(scope: Scope): Promise<{ messages: UIMessage[]; last_seq: number }> {
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

export type ReflexChatOptions = {
  /** The scope of the chat, or of the chat with this id. */
  scope: Scope | ((chat_id: string) => Scope)
  /** The name of the person who writes. The id of the chat by default. */
  connection_id?: string
}
type Sending = Parameters<ChatTransport<UIMessage>['sendMessages']>[0]
type Reconnecting = Parameters<ChatTransport<UIMessage>['reconnectToStream']>[0]
type Chunks = ReadableStream<UIMessageChunk>

const PAUSE_MS = { first: 500, most: 8000 }

/**
 * Lets `useChat` talk to a scope: each message is a `ws.message` event, and the scope's log is the
 * answer. A stream survives lost connections and a killed server. An abort ends the stream only;
 * `stop` cancels the turn.
 */
export class ReflexChatTransport<Message extends UIMessage = UIMessage> implements ChatTransport<Message> {
  /** A resumed stream is read from the log, from its beginning. */
  readonly resumeStreamIsReplay = true
  readonly #options: ReflexChatOptions
  /** The last `seq` that `messages` has read. */
  readonly #read = new Map<Scope, number>()

  constructor(options: ReflexChatOptions) {
    this.#options = options
  }

  async sendMessages({ chatId, messages, trigger, abortSignal }: Sending): Promise<Chunks> {
    const message = messages.findLast(({ role }) => role === 'user')
    if (!message) throw new Error('there is no message of a user to send')
    // A repeated request is a duplicate by its message's id; a regenerated answer needs its own.
    const id = trigger === 'regenerate-message' ? `${message.id}:${crypto.randomUUID()}` : message.id
    const connection_id = this.#options.connection_id ?? chatId
    const event = { type: 'ws.message', id, connection_id, source: `ws:${connection_id}`, content: textOf(message) }
    const scope = this.#scopeOf(chatId)
    return answerStream(scope, id, { signal: abortSignal, send: () => scope.send(event) })
  }

  /** The stream of the newest message without an answer, or null. */
  async reconnectToStream({ chatId, abortSignal }: Reconnecting): Promise<Chunks | null> {
    const scope = this.#scopeOf(chatId)
    const found = await untilReachable(() => unanswered(scope, this.#read.get(scope)), abortSignal)
    return found && answerStream(scope, found.event_id, { signal: abortSignal, after: found.after })
  }

  /** The chat so far, for the option `messages` of `useChat`: the newest messages in the log. */
  async messages(chatId = ''): Promise<Message[]> {
    const scope = this.#scopeOf(chatId)
    const { messages, last_seq } = await untilReachable(() => readMessages(scope), undefined)
    this.#read.set(scope, last_seq)
    return messages as Message[]
  }

  /** Cancels the turn in flight, durably. `stop` of `useChat` only stops listening. */
  async stop(chatId = '', reason = 'stopped by the user'): Promise<void> {
    await this.#scopeOf(chatId).cancel(reason)
  }

  #scopeOf(chat_id: string): Scope {
    const { scope } = this.#options
    return typeof scope === 'function' ? scope(chat_id) : scope
  }
}

function textOf({ parts }: UIMessage): string {
  if (parts.some(({ type }) => type === 'file'))
    throw new Error('a message to a scope is text: send files by another route, and their address here')
  return parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
}

type Ways = { signal: AbortSignal | undefined; after?: number; send?: () => Promise<{ status: string }> }

/** The chunks of the answer to an event: after `after`, or to one that is sent now. */
function answerStream(scope: Scope, event_id: string, { signal, after, send }: Ways): Chunks {
  const partials: Partials = new Map()
  let stop = () => {}
  return new ReadableStream<UIMessageChunk>({
    start(controller) {
      const listen = (answer: ChatAnswer, from: number | undefined) => {
        const put = (chunks: UIMessageChunk[]) => {
          for (const chunk of chunks) controller.enqueue(chunk)
          if (!answer.done) return
          stop()
          controller.close()
        }
        put(answer.begin())
        stop = scope.subscribe({
          after: from,
          onEntry: (entry) => put(answer.entry(entry)),
          onDelta: (delta) => put(answer.delta(delta)),
          onStatus: (status, error) => status === 'closed' && controller.error(error ?? new Error('the connection was closed')),
        })
      }
      listen(new ChatAnswer(event_id, partials), after)
      signal?.addEventListener('abort', () => {
        stop()
        controller.error(signal.reason)
      })
      const sendNow = async () => {
        const ack = await send?.()
        if (ack?.status !== 'duplicate' || scope.last_seq === null) return
        // It was accepted before: entries about it may be in the past.
        stop()
        controller.enqueue({ type: 'reset-step' })
        listen(new ChatAnswer(event_id, partials), Math.max(0, scope.last_seq - LOOK_BACK))
      }
      sendNow().catch((error: unknown) => {
        stop()
        controller.error(error)
      })
    },
    cancel: () => stop(),
  })
}

/** Repeats a request while the deployment is away. */
async function untilReachable<Value>(ask: () => Promise<Value>, signal: AbortSignal | undefined): Promise<Value> {
  for (let pause = PAUSE_MS.first; ; pause = Math.min(PAUSE_MS.most, 2 * pause)) {
    try {
      return await ask()
    } catch (error) {
      if (error instanceof ReflexError && error.status < 500 && error.status !== 429) throw error
      signal?.throwIfAborted()
      await new Promise((resolve) => setTimeout(resolve, pause))
    }
  }
}
