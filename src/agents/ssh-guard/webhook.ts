import type { ToolCall } from '../../tools/define-tool.ts'

/** An address that is told of something; null where none is set. Errors name no more than the host: a webhook's path is often its password. */
export function webhookAt(name: string, url: string | undefined): URL | null {
  if (!url) return null
  const parsed = URL.parse(url)
  if (!parsed) throw new Error(`${name} is no URL`)
  const loopback = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(parsed.hostname)
  if (parsed.protocol !== 'https:' && !(parsed.protocol === 'http:' && loopback)) {
    throw new Error(`${name} must be https, or http on this machine; it is ${parsed.protocol}//${parsed.host}`)
  }
  return parsed
}

/** `key` names what is told: where it comes again, the receiver knows that it has it. */
export async function tellWebhook(
  webhook: URL,
  told: object,
  { fetch, signal, key }: Pick<ToolCall, 'fetch' | 'signal'> & { key: string },
): Promise<void> {
  const response = await fetch(webhook, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify(told),
    // A redirect could lead out of https.
    redirect: 'manual',
    signal,
  })
  await response.body?.cancel()
  if (response.ok) return
  const retryable = response.status === 429 || response.status >= 500
  throw Object.assign(new Error(`the webhook at ${webhook.host} answered ${response.status}`), { retryable })
}
