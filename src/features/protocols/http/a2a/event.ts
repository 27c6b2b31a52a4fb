import type { Message } from '@a2a-js/sdk'
import { ContentTypeNotSupportedError, RequestMalformedError } from '@a2a-js/sdk/errors'
import type { Clean } from '../../../../base/secrets.ts'
import { isJsonFields } from '../../../../base/json.ts'
import type { Event } from '../../../../core/event.ts'
import { parseEvent, type EventRules } from '../../../../events/parse-event.ts'

/** The parts that a message consists of, as an event understands them. */
export type A2aContent = { text: string; data: Record<string, unknown> | null }

export function saidIn({ parts }: Message): A2aContent {
  const texts: string[] = []
  let data: A2aContent['data'] = null
  for (const { content } of parts) {
    if (content?.$case === 'raw' || content?.$case === 'url')
      throw new ContentTypeNotSupportedError('Files are not supported: a message has parts of text, and at most one part of data.')
    if (content?.$case === 'text') texts.push(content.value)
    else if (content?.$case === 'data' && isJsonFields(content.value) && data === null) data = content.value
    else throw malformed('A message has parts of text, and at most one part of data, which is an object.')
  }
  if (texts.length === 0 && data === null) throw malformed('A message has at least one part.')
  return { text: texts.join('\n'), data }
}

/**
 * The event of a message: its id is `messageId`, so that a message that is sent again is a
 * duplicate. Data with a `type` is that event; a text is a `ws.message`.
 */
export function eventOf(message: Message, rules: EventRules, task: Event | null): Clean<Event> {
  const { messageId } = message
  if (messageId === '') throw malformed('messageId is required: messages that repeat it are dropped.')
  const { text, data } = saidIn(message)
  const fields = data && typeof data['type'] === 'string' ? data : { type: 'ws.message', content: textOf(text, data) }
  const { source, trace } = rules.defaults
  const about = task
    ? { trace_id: task.meta.trace_id, correlation_id: task.meta.correlation_id ?? task.id, causation_id: task.id }
    : { correlation_id: null, causation_id: null, ...trace }
  const parsed = parseEvent({ connection_id: `a2a:${source}`.slice(0, 128), ...fields, id: messageId, source, meta: about }, rules)
  if (parsed.ok) return parsed.event
  const [{ path, message: why } = { path: '', message: 'it is invalid' }] = parsed.errors
  throw malformed(`${path === 'id' ? 'messageId' : path || 'the event'}: ${why}`)
}

const textOf = (text: string, data: A2aContent['data']): string =>
  data === null ? text : [text, JSON.stringify(data)].filter(Boolean).join('\n')

const malformed = (message: string): RequestMalformedError => new RequestMalformedError(message)
