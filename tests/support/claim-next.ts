import type { Delivery, EventStore, Subscription } from '../../src/core/event-store.ts'
import type { Event } from '../../src/core/event.ts'

/**
 * The next delivery, or undefined. The subscription ends with it, like the subscription of a dead
 * consumer.
 */
export async function claimNext<E extends Event>(store: EventStore<E>, subscription: Subscription = {}): Promise<Delivery<E> | undefined> {
  const controller = new AbortController()
  const deliveries = store.subscribe({ ...subscription, signal: controller.signal })[Symbol.asyncIterator]()
  // A store in memory answers in microtasks: what has not come by then is not there.
  const giveUp = setImmediate(() => controller.abort())
  const { value, done } = await deliveries.next()
  clearImmediate(giveUp)
  return done ? undefined : value
}
