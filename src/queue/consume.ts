import type { Env, QueueMessage } from '../bindings.ts'
import type { Event } from '../core/event.ts'
import { addDeadLetters, deadLettersOf } from '../store/dead-letters.ts'
import { messageOf } from '../protocol/message-of.ts'
import { queueMessage } from './message.ts'

type Parsed = { message: Message; body: QueueMessage }
const RETRY_S = 2

/**
 * The consumer of the events' queue: one call for each scope of the batch, then each message acknowledged or retried by itself. It never throws: a throw would
 * retry messages that were delivered.
 */
export async function consumeEvents(batch: MessageBatch, env: Env): Promise<void> {
  const { readable, unreadable } = parse(batch)
  await Promise.all([
    ...Array.from(
      Map.groupBy(readable, ({ body }) => body.scope),
      ([scope, group]) => deliver(env, scope, group),
    ),
    ...unreadable.map((message) => bury(env, message, 'the message could not be read: it is not {scope, events}')),
  ])
}

/** What could not be delivered in all its attempts ends here, in D1, where an operator finds it. */
export async function consumeDeadLetters(batch: MessageBatch, env: Env): Promise<void> {
  await Promise.all(
    batch.messages.map((message) =>
      bury(env, message, 'not delivered in all attempts: its scope could not be reached, or its inbox was full'),
    ),
  )
}

async function deliver(env: Env, scope: string, group: readonly Parsed[]): Promise<void> {
  try {
    const accepted = await env.SCOPE.getByName(scope).accept(
      group.flatMap(({ body }) => body.events),
      'queue',
    )
    if (accepted.ok) for (const { message } of group) message.ack()
    else if (group.length === 1) group[0]?.message.retry({ delaySeconds: 30 })
    // Together they do not fit; one by one some of them may.
    else for (const one of group) await deliver(env, scope, [one])
  } catch (error) {
    console.warn(JSON.stringify({ message: 'a scope could not be reached, its messages are retried', scope, error: messageOf(error) }))
    for (const { message } of group) message.retry({ delaySeconds: RETRY_S * 2 ** Math.min(message.attempts, 6) })
  }
}

async function bury(env: Env, message: Message, error: string): Promise<void> {
  try {
    const parsed = queueMessage.safeParse(message.body)
    const events = parsed.success ? (parsed.data.events as unknown as Event[]) : []
    await addDeadLetters(env.DB, deadLettersOf(events, message, error))
    message.ack()
  } catch (failure) {
    console.error(
      JSON.stringify({ message: 'a dead letter could not be written, it is tried again', id: message.id, error: String(failure) }),
    )
    message.retry({ delaySeconds: 30 })
  }
}

function parse(batch: MessageBatch): { readable: Parsed[]; unreadable: Message[] } {
  const readable: Parsed[] = []
  const unreadable: Message[] = []
  for (const message of batch.messages) {
    const parsed = queueMessage.safeParse(message.body)
    if (parsed.success) readable.push({ message, body: parsed.data as unknown as QueueMessage })
    else unreadable.push(message)
  }
  return { readable, unreadable }
}
