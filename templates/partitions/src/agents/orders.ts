import { all, defineAgent, eventType, typeFilter, withDefaults } from 'reflex-agents'
import { z } from 'zod'

const order = { order: z.string(), customer: z.string(), total: z.coerce.number() }
export const orderPlaced = eventType('shop.order', order)
export const largeOrder = eventType('shop.large', order)

const PARTITIONS = 16
const LARGE = 1000
const MOST_A_DAY = 50_000

/** The scope of a customer's orders: `orders/eu:0` to `orders/eu:15`. */
export function partitionOf(region: string, customer: string): string {
  let hash = 0
  for (const character of customer) hash = (Math.imul(hash, 31) + (character.codePointAt(0) ?? 0)) >>> 0
  return `orders/${region}:${hash % PARTITIONS}`
}

/** Serves all partitions. Small orders end here, without a turn. */
export const orderPartition = defineAgent({
  name: 'order-partition',
  scopes: ['orders/*'],
  events: [orderPlaced, largeOrder],
  filters: [all(typeFilter('shop.order'), (event) => event.total >= LARGE)],
  async trigger(context, deps) {
    const region = context.scope.replace(/^orders\/(.+):\d+$/, '$1')
    const large = context.ofType('shop.order').map(({ id, order: name, customer, total }) =>
      // With an id of its own: a turn that is repeated sends nothing twice.
      largeOrder.parse(
        withDefaults(
          { id: `${id}.large`, type: 'shop.large', order: name, customer, total },
          { now: Date.now(), source: context.scope, scope: `regions/${region}` },
        ),
      ),
    )
    await deps.store.publish(...large)
    return { forwarded: large.length }
  },
})

/** Decides for a region, which hears only of what matters. */
export const region = defineAgent({
  name: 'region',
  scopes: ['regions/*'],
  events: [largeOrder],
  filters: [typeFilter('shop.large')],
  async trigger(context, deps) {
    const today = new Date().toISOString().slice(0, 10)
    const before = context.scratch['day'] === today ? Number(context.scratch['total']) : 0
    const orders = context.ofType('shop.large')
    const total = orders.reduce((sum, { total: one }) => sum + one, before)
    Object.assign(context.scratch, { day: today, total })
    if (total > MOST_A_DAY)
      deps.reply(`${context.scope} has large orders of ${total} today: hold ${orders.map(({ order: name }) => name).join(', ')}`)
    return { total }
  },
})
