import { listen, type SentResponse, type ReceivedRequest, type Streamed } from '../../cli/lib/listen.ts'
import type { Message } from './input.ts'

type Turn = { role: string; content: unknown; tool_calls?: unknown }
export type Teacher = { vars: Record<string, string>; answers: () => number; stop: () => void }

/** The tool's name as models see it. */
const TOOL = 'http_file'

/**
 * A scripted language model behind the common protocol. It files each message as its label says,
 * and then says that it did, as models do. It stands for the expensive model that a reflex is to
 * spare.
 */
export async function startTeacher(messages: readonly Message[]): Promise<Teacher> {
  const labels = new Map(messages.map(({ id, label }) => [id, label]))
  let answers = 0
  const { host, stop } = await listen((asked) => {
    answers += 1
    return completion(asked, labels)
  })
  const vars = {
    REFLEX_MODEL: 'openai-compatible/scripted',
    OPENAI_COMPATIBLE_BASE_URL: `http://${host}/v1`,
    OPENAI_COMPATIBLE_API_KEY: 'none',
  }
  return { vars, answers: () => answers, stop }
}

function completion({ body }: ReceivedRequest, labels: ReadonlyMap<string, string | null>): SentResponse | Streamed {
  const { messages, stream = false }: { messages: Turn[]; stream?: boolean } = JSON.parse(body)
  const folder = labels.get(latestId(messages)) ?? null
  const isFiled = messages.at(-1)?.role === 'tool'
  const label = isFiled ? null : folder
  const call = {
    id: `call-${latestId(messages)}`,
    type: 'function',
    function: { name: TOOL, arguments: JSON.stringify({ folder: label }) },
  }
  const message = {
    role: 'assistant',
    content: isFiled ? `I filed it under ${folder}.` : '',
    ...(label !== null && { tool_calls: [{ index: 0, ...call }] }),
  }
  const usage = { prompt_tokens: Math.ceil(body.length / 4), completion_tokens: 20, total_tokens: Math.ceil(body.length / 4) + 20 }
  const finish_reason = label === null ? 'stop' : 'tool_calls'
  const head = { id: 'scripted', created: 0, model: 'scripted' }
  // A scope streams while somebody follows its log.
  if (stream)
    return {
      status: 200,
      events: [{ ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta: message, finish_reason }], usage }],
    }
  return { status: 200, body: { ...head, object: 'chat.completion', choices: [{ index: 0, message, finish_reason }], usage } }
}

/** The context shows the events as JSON lines, the latest one last. */
function latestId(messages: readonly Turn[]): string {
  const asked = messages.findLast(({ role }) => role === 'user')
  const ids = textOf(asked?.content).matchAll(/^\{"id":"(message-\d+)"/gm)
  return Array.from(ids, ([, id]) => id).at(-1) ?? ''
}

const textOf = (content: unknown): string =>
  typeof content === 'string' ? content : ((content ?? []) as { text?: string }[]).map(({ text = '' }) => text).join('')
