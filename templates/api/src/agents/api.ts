import { defineAgent, defineTool, eventType, typeFilter } from 'reflex-agents'
import { z } from 'zod'

declare module 'reflex-agents' {
  interface Env {
    /** The address that ships orders, such as https://warehouse.example.com/shipments. */
    WAREHOUSE_URL?: string
  }
}

export const orderPlaced = eventType('order.placed', { order: z.string().max(100), item: z.string().max(100) })

/** Ships each order once, however often its event arrives and whatever dies in between. */
export const api = defineAgent({
  name: 'api',
  scopes: ['orders/*'],
  events: [orderPlaced],
  filters: [typeFilter('order.placed')],
  tools: {
    ship: defineTool({
      description: 'Ships an order',
      input: z.object({ order: z.string(), item: z.string() }),
      idempotence_key: ({ order }) => `ship:${order}`,
      async execute({ order, item }, { env, fetch, signal }) {
        if (!env.WAREHOUSE_URL) throw new Error('WAREHOUSE_URL is not set: set it in .dev.vars, then retry this dead letter')
        const body = JSON.stringify({ order, item })
        const answer = await fetch(env.WAREHOUSE_URL, { method: 'POST', headers: { 'Idempotency-Key': order }, body, signal })
        if (!answer.ok) throw new Error(`The warehouse answered ${answer.status}.`)
        return { shipped: true }
      },
    }),
  },
  async trigger(context, deps) {
    const orders = context.ofType('order.placed').map(({ order, item }) => ({ order, item }))
    for (const order of orders) await deps.call('ship', order)
    return { orders: orders.length }
  },
})
