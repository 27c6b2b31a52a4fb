import { hexHash } from '../../../base/hash.ts'
import { createHash, timingSafeEqual } from 'node:crypto'
import { Webhook, WebhookVerificationError } from 'standardwebhooks'
import type { Refused } from '../../../base/result.ts'
import type { HookScheme } from '../contract/hook.ts'

/** Tolerated age of a signed time, and difference between clocks. */
const TOLERANCE_S = 300

type Signed = { secret: string; headers: Headers; body: string; now: number }
/** `delivery` identifies the delivery; it is part of what was signed. */
type Verified = { ok: true; delivery: string } | Refused<'signature' | 'stale' | 'misconfigured'>
type Verify = (signed: Signed) => Promise<Verified>

/** Verifies a delivery in constant time. Never throws, and names no part of the secret. */
export const verifyHook = (scheme: HookScheme, signed: Signed): Promise<Verified> => schemes[scheme](signed)

const schemes: Record<HookScheme, Verify> = {
  standard: async ({ secret, headers, body }) => {
    try {
      new Webhook(secret).verify(body, Object.fromEntries(headers), { jsonParse: false })
      return { ok: true, delivery: headers.get('webhook-id') ?? '' }
    } catch (error) {
      if (!(error instanceof WebhookVerificationError)) return misconfigured
      return error.message.startsWith('Message timestamp') ? stale : badSignature
    }
  },
  github: async ({ secret, headers, body }) => {
    const [, signature] = /^sha256=([0-9a-f]{64})$/.exec(headers.get('x-hub-signature-256') ?? '') ?? []
    if (signature === undefined || !(await fits(secret, body, signature))) return badSignature
    // X-GitHub-Delivery is not signed: under another one, the same body would be accepted again.
    return { ok: true, delivery: signature.slice(0, 40) }
  },
  stripe: async ({ secret, headers, body, now }) => {
    const parts = (headers.get('stripe-signature') ?? '').split(',').map((part) => part.trim().split('=', 2))
    const time = parts.find(([name]) => name === 't')?.[1] ?? ''
    const signatures = parts.flatMap(([name, value = '']) => (name === 'v1' && /^[0-9a-f]{64}$/.test(value) ? [value] : [])).slice(0, 5)
    if (!/^\d{1,12}$/.test(time)) return badSignature
    const fitting = await Promise.all(signatures.map((signature) => fits(secret, `${time}.${body}`, signature)))
    const index = fitting.indexOf(true)
    if (index < 0) return badSignature
    if (Math.abs(now / 1000 - Number(time)) > TOLERANCE_S) return stale
    // A retry is signed again: the id of the event in the body stays the same.
    return { ok: true, delivery: idIn(body) ?? signatures[index]?.slice(0, 40) ?? '' }
  },
  slack: async ({ secret, headers, body, now }) => {
    const [, signature] = /^v0=([0-9a-f]{64})$/.exec(headers.get('x-slack-signature') ?? '') ?? []
    const time = headers.get('x-slack-request-timestamp') ?? ''
    if (signature === undefined || !/^\d{1,12}$/.test(time)) return badSignature
    if (!(await fits(secret, `v0:${time}:${body}`, signature))) return badSignature
    if (Math.abs(now / 1000 - Number(time)) > TOLERANCE_S) return stale
    return { ok: true, delivery: idIn(body, 'event_id') ?? signature.slice(0, 40) }
  },
  telegram: async ({ secret, headers, body }) => {
    const sent = headers.get('x-telegram-bot-api-secret-token') ?? ''
    // Hashes have one length, so that the time tells nothing of the secret.
    const [left, right] = [sent, secret].map((text) => createHash('sha256').update(text).digest())
    if (left === undefined || right === undefined || !timingSafeEqual(left, right)) return badSignature
    return { ok: true, delivery: idIn(body, 'update_id') ?? hexHash(body).slice(0, 40) }
  },
}

const badSignature = { ok: false, reason: 'signature', detail: 'The signature is missing or wrong.' } as const
const stale = { ok: false, reason: 'stale', detail: `The signed time differs from now by more than ${TOLERANCE_S} s.` } as const
const misconfigured = { ok: false, reason: 'misconfigured', detail: 'The secret of this hook is malformed.' } as const

/** Compares in constant time. */
async function fits(secret: string, text: string, signature: string): Promise<boolean> {
  const encoder = new TextEncoder()
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const key = await crypto.subtle.importKey('raw', encoder.encode(secret), algorithm, false, ['verify'])
  const bytes = Uint8Array.from(signature.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
  return crypto.subtle.verify('HMAC', key, bytes, encoder.encode(text))
}

function idIn(body: string, field = 'id'): string | null {
  try {
    const { [field]: id } = JSON.parse(body) as Record<string, unknown>
    return (typeof id === 'string' || typeof id === 'number') && /^[\w-]{1,80}$/.test(String(id)) ? String(id) : null
  } catch {
    return null
  }
}
