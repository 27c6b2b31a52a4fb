import type { Env, QueueMessage } from '../env.ts'
import type { Event } from '../core/event.ts'
import { addDeadLetters, deadLettersOf } from '../store/dead-letters.ts'
import { deploymentHider } from '../contract/secrets.ts'
import { messageOf } from '../base/error-text.ts'
import { queueMessage } from './pack.ts'
import { logError, warn } from '../base/warn.ts'

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

/** The first time in one call. A message that comes again is delivered alone, so that one which cannot be taken holds up no other. */
async function deliver(env: Env, scope: string, group: readonly Parsed[]): Promise<void> {
  const [again, fresh] = [group.filter(({ message }) => message.attempts > 1), group.filter(({ message }) => message.attempts <= 1)]
  if (fresh.length > 0) await deliverTogether(env, scope, fresh)
  for (const one of again) await deliverAlone(env, scope, one)
}

async function deliverTogether(env: Env, scope: string, group: readonly Parsed[]): Promise<void> {
  const events = group.flatMap(({ body }) => body.events)
  const taken = await accept(env, scope, events)
  if (taken === 'accepted') for (const { message } of group) message.ack()
  else if (taken === 'failed' || group.length === 1) for (const { message } of group) retry(message, taken)
  // Together they do not fit; one by one some of them may.
  else for (const one of group) await deliverTogether(env, scope, [one])
}

/** Its events are split until what fails is alone: the inbox has the others then, and drops their copies when the message comes again. */
async function deliverAlone(env: Env, scope: string, { message, body }: Parsed): Promise<void> {
  let calls = MOST_CALLS
  const take = async (events: readonly Event[]): Promise<Taken> => {
    if (calls-- <= 0) return 'failed'
    const taken = await accept(env, scope, events)
    if (taken !== 'failed' || events.length === 1) return taken
    const half = Math.ceil(events.length / 2)
    const parts = [await take(events.slice(0, half)), await take(events.slice(half))]
    return parts.find((part) => part !== 'accepted') ?? 'accepted'
  }
  const taken = await take(body.events)
  if (taken === 'accepted') message.ack()
  else retry(message, taken)
}

/** Enough to find two events among a thousand; a scope that cannot be reached at all is not asked more often. */
const MOST_CALLS = 40

type Taken = 'accepted' | 'full' | 'failed'

async function accept(env: Env, scope: string, events: readonly Event[]): Promise<Taken> {
  try {
    return (await env.SCOPE.getByName(scope).accept([...events], 'queue')).ok ? 'accepted' : 'full'
  } catch (error) {
    const about = { scope, events: events.length, error: messageOf(error) }
    warn({ message: 'a scope did not take events of the queue, they are sent again', ...about })
    return 'failed'
  }
}

const retry = (message: Message, taken: Taken): void =>
  message.retry({ delaySeconds: taken === 'full' ? 30 : RETRY_S * 2 ** Math.min(message.attempts, 6) })

async function bury(env: Env, message: Message, error: string): Promise<void> {
  try {
    const parsed = queueMessage.safeParse(message.body)
    const events = parsed.success ? (parsed.data.events as unknown as Event[]) : []
    const hider = deploymentHider(env)
    const letters = deadLettersOf(events, message, error)
    await addDeadLetters(
      env.DB,
      letters.map((letter) => ({ ...letter, payload: hider.text(letter.payload) })),
    )
    message.ack()
  } catch (failure) {
    logError({ message: 'a dead letter could not be written, it is tried again', id: message.id, error: failure })
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
