import { Webhook } from 'standardwebhooks'
import { withDeadline } from '../../../base/deadline.ts'
import { messageOf } from '../../../base/error-text.ts'
import { hopsOfDelivery, MOST_HOPS, type Notice } from '../contract/notice.ts'
import type { WebhookSetting } from '../contract/setting.ts'
import type { Env } from '../../../env.ts'
import { guardedFetch } from '../../../tools/guarded-fetch.ts'
import { secretHosts, secretOf } from '../../../tools/tool-secrets.ts'
import type { Job } from '../../../engine/jobs.ts'
import { scopeHead } from '../../../engine/log/spans.ts'
import type { Ground } from '../../../engine/storage/wiring.ts'
import type { Notices, WaitingNotice } from './notices.ts'

/** Pauses between attempts, as Standard Webhooks suggests: about 28 hours in all. */
const PAUSES_MS = [5, 300, 1800, 7200, 18_000, 36_000, 36_000].map((seconds) => seconds * 1000)
const MOST_ATTEMPTS = PAUSES_MS.length + 1
const AT_ONCE = 4
const TIMEOUT_MS = 15_000
const GONE = 410

const LOOP = `it was not sent: ${MOST_HOPS} notices stand behind its event, each of which reached a hook. This looks like a loop`

type SendNoticeParts = Pick<Ground, 'env' | 'scope' | 'jobs' | 'unit' | 'settings' | 'fetch' | 'now'> & {
  notices: Pick<Notices, 'takeDropped'>
}
/** `final`: a repetition would end the same way. */
type Sent = { ok: true; http_status: number } | { ok: false; http_status: number | null; error: string; final?: true }

/**
 * Delivers notices at least once: after a crash before the unit that records the end, the job runs
 * again under the same `webhook-id`. Each begun attempt counts, until the notice has failed.
 */
export function handleNotices(parts: SendNoticeParts): void {
  parts.jobs.handle<WaitingNotice>('notice', {
    work: 'notice',
    at_once: AT_ONCE,
    attempts: MOST_ATTEMPTS,
    run: (job) => attempt(job, parts),
    giveUp: (job, reason) => end(job, { ok: false, http_status: null, error: reason }, parts),
  })
}

async function attempt(job: Job<WaitingNotice>, parts: SendNoticeParts): Promise<{ again_ms: number } | void> {
  const { settings, env, scope, fetch: send, now } = parts
  const { webhooks, allowed_hosts } = settings()
  const webhook = webhooks.find(({ name }) => name === job.payload.webhook)
  const sent: Sent =
    hopsOfDelivery(job.payload.notice.id) > MOST_HOPS
      ? { ok: false, http_status: null, error: LOOP, final: true }
      : webhook
        ? await deliver(job.payload.notice, { webhook, allowed_hosts, env, scope, fetch: send, now: now() })
        : { ok: false, http_status: null, error: 'the webhook was removed from the settings', final: true }
  const again_ms = PAUSES_MS[job.attempts - 1]
  if (!sent.ok && sent.final !== true && again_ms !== undefined) return { again_ms }
  end(job, sent, parts)
}

function end({ key, payload, attempts }: Job<WaitingNotice>, sent: Sent, { unit, jobs, notices }: SendNoticeParts): void {
  const { webhook, notice } = payload
  unit((ending) => {
    jobs.done(ending, 'notice', key)
    const dropped = notices.takeDropped(ending)
    ending.log({
      ...scopeHead(),
      kind: 'notice-ended',
      notice_id: notice.id,
      notice_type: notice.type,
      webhook,
      status: sent.ok ? 'delivered' : 'failed',
      attempts,
      http_status: sent.http_status,
      error: sent.ok ? null : sent.error,
      ...(dropped > 0 && { dropped }),
    })
  })
}

type Delivery = { webhook: WebhookSetting; allowed_hosts: readonly string[]; env: Env; scope: string; fetch: typeof fetch; now: number }

/** Signs a notice and sends it once. */
async function deliver({ id, type, at, data }: Notice, { webhook, allowed_hosts, env, scope, fetch: send, now }: Delivery): Promise<Sent> {
  const secret = secretOf(env, webhook.secret, scope)
  if (secret === undefined) return { ok: false, http_status: null, error: `the secret ${webhook.secret} is not set, or not for this scope` }
  const body = JSON.stringify({ type, timestamp: new Date(at).toISOString(), data })
  const signature = sign(secret, { id, now, body })
  if (signature === null) return { ok: false, http_status: null, error: `the secret ${webhook.secret} is not \`whsec_\` and base64` }
  const headers = {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(now / 1000)),
    'webhook-signature': signature,
  }
  const guard = { allowed_hosts, secret_hosts: [secretHosts(env, webhook.secret)], fetch: send }
  try {
    const request = (signal: AbortSignal) => guardedFetch(webhook.url, { method: 'POST', headers, body, signal }, guard)
    const response = await withDeadline(request, { timeout_ms: TIMEOUT_MS, what: 'the webhook' })
    await response.body?.cancel()
    if (response.ok) return { ok: true, http_status: response.status }
    const error = `the webhook responded with ${response.status}`
    return { ok: false, http_status: response.status, error, ...(response.status === GONE && { final: true as const }) }
  } catch (error) {
    return { ok: false, http_status: null, error: messageOf(error) }
  }
}

/** Null if the secret is malformed; the library's own error might quote it. */
function sign(secret: string, { id, now, body }: { id: string; now: number; body: string }): string | null {
  try {
    return new Webhook(secret).sign(id, new Date(now), body)
  } catch {
    return null
  }
}
