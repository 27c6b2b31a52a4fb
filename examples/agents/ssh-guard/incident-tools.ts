import { createHash } from 'node:crypto'
import { z } from 'zod'
import { defineTool } from '../../../src/tools/define-tool.ts'
import { logLine } from './line.ts'
import { sshLineOf } from './burst.ts'
import { tellWebhook, webhookAt } from './webhook.ts'
import { warn } from '../../../src/base/warn.ts'
import { storeOf } from '../../../src/store/store.ts'

const MOST_LINES = 20
const MOST_LINE = 300
/** The number of the scope's latest events that are searched for evidence. */
const MOST_LOOKED_AT = 2000

const address = z.union([z.ipv4(), z.ipv6()])
const text = z.string().trim().min(1)
const evidence = z.array(z.string().max(MOST_LINE)).max(MOST_LINES)

/** Collects the latest lines about addresses, for people. They contain strangers' text. */
export const collectEvidence = defineTool({
  description: 'Collects the log lines about some addresses.',
  input: z.object({ addresses: z.array(address).min(1).max(50) }),
  plans_only: true,
  repeatable: true,
  async execute({ addresses }, { env, scope }) {
    const { events } = await env.SCOPE.getByName(scope).context(MOST_LOOKED_AT)
    const lines = events.flatMap((event) => {
      const read = logLine.safeParse(event)
      const of = read.success ? sshLineOf(read.data)?.address : undefined
      return read.success && of !== undefined && addresses.includes(of) ? [read.data.line.slice(0, MOST_LINE)] : []
    })
    return { lines: lines.slice(-MOST_LINES) }
  },
})

/** Opens a ticket by webhook and in D1. The id derives from the run's key, so it is idempotent. */
export const openTicket = defineTool({
  description: 'Opens a ticket for people to look at.',
  input: z.object({ title: text.max(200), details: text.max(2500), evidence }),
  plans_only: true,
  timeout_ms: 10_000,
  async execute({ title, details, evidence }, { env, fetch, scope, signal, now, idempotence_key }) {
    const desk = webhookAt('TICKET_WEBHOOK_URL', env.TICKET_WEBHOOK_URL)
    const id = ticketId(scope, idempotence_key ?? JSON.stringify([title, details, now()]))
    if (desk) await tellWebhook(desk, { id, scope, status: 'open', title, details, evidence }, { fetch, signal, key: `${id} open` })
    try {
      await storeOf(env)
        .prepare('INSERT INTO incidents (scope, id, title, details, evidence, opened_at) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING')
        .bind(scope, id, title, details, JSON.stringify(evidence), now())
        .run()
    } catch (error) {
      // The ticket system has the ticket: an error here would report it as unopened.
      if (!desk) throw error
      warn({ message: 'a ticket is not among the incidents of D1', scope, id, error })
    }
    return { ticket: id, reported: desk !== null }
  },
})

/** Closes the ticket if the rest of the plan fails. */
export const closeTicket = defineTool({
  description: 'Closes a ticket.',
  input: z.object({ ticket: text.max(64), reason: text.max(500) }),
  plans_only: true,
  timeout_ms: 10_000,
  async execute({ ticket, reason }, { env, fetch, scope, signal, now }) {
    const desk = webhookAt('TICKET_WEBHOOK_URL', env.TICKET_WEBHOOK_URL)
    if (desk) await tellWebhook(desk, { id: ticket, scope, status: 'closed', reason }, { fetch, signal, key: `${ticket} closed` })
    await storeOf(env)
      .prepare('UPDATE incidents SET closed_at = coalesce(closed_at, ?3) WHERE scope = ?1 AND id = ?2')
      .bind(scope, ticket, now())
      .run()
    return { closed: true, ticket, reported: desk !== null }
  },
})

/** Notifies the people on duty by a webhook; without one, the scope's log has the message. */
export const notify = defineTool({
  description: 'Notifies the people on duty.',
  input: z.object({ message: text.max(3000) }),
  plans_only: true,
  timeout_ms: 10_000,
  async execute({ message }, { env, fetch, scope, signal, idempotence_key }) {
    const webhook = webhookAt('NOTIFY_WEBHOOK_URL', env.NOTIFY_WEBHOOK_URL)
    if (!webhook) return { told: 'the log' }
    await tellWebhook(webhook, { scope, message }, { fetch, signal, key: `${scope} ${idempotence_key ?? message}` })
    return { told: webhook.host }
  },
})

const ticketId = (scope: string, key: string): string =>
  `INC-${createHash('sha256')
    .update(JSON.stringify([scope, key]))
    .digest('hex')
    .slice(0, 20)}`
