import type { ToolCall } from '../../../src/tools/define-tool.ts'

declare module '../../../src/env.ts' {
  interface Env {
    /** The guard reports each block to this address. Unset: it reports none. */
    BLOCK_WEBHOOK_URL?: string
    /** A ticket system that opens and closes tickets. Unset: tickets are rows in D1 only. */
    TICKET_WEBHOOK_URL?: string
    /** Receives notifications for the people on duty. Unset: none are sent. */
    NOTIFY_WEBHOOK_URL?: string
  }
}

/** Parses a webhook's URL, or null. Errors name only the host: the path may be a password. */
export function webhookAt(name: string, url: string | undefined): URL | null {
  if (!url) return null
  const parsed = URL.parse(url)
  if (!parsed) throw new Error(`${name} is not a URL`)
  const loopback = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(parsed.hostname)
  if (parsed.protocol !== 'https:' && !(parsed.protocol === 'http:' && loopback)) {
    throw new Error(`${name} must be https, or http on this machine; it is ${parsed.protocol}//${parsed.host}`)
  }
  return parsed
}

/** `key` is the Idempotency-Key, by which the receiver recognises a repetition. */
export async function tellWebhook(
  webhook: URL,
  told: object,
  { fetch, signal, key }: Pick<ToolCall, 'fetch' | 'signal'> & { key: string },
): Promise<void> {
  const response = await fetch(webhook, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify(told),
    // A redirect could leave https.
    redirect: 'manual',
    signal,
  })
  await response.body?.cancel()
  if (response.ok) return
  const retryable = response.status === 429 || response.status >= 500
  throw Object.assign(new Error(`the webhook at ${webhook.host} answered ${response.status}`), { retryable })
}
