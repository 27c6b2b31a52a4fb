import { withDeadline } from '../../../base/deadline.ts'
import { messageOf } from '../../../base/error-text.ts'
import { retryAfterMs } from '../../../base/faults.ts'
import { parseJson } from '../../../base/parse-json.ts'
import type { OtlpTarget } from '../../../traces/otlp-target.ts'
import { limitBody } from '../../../tools/response-body.ts'

/** By OTLP's specification: no other status is retried. */
const RETRIED = new Set([429, 502, 503, 504])
const LONGEST_WAIT_MS = 600_000
const MOST_BYTES = 64_000
const LONGEST_TEXT = 500

/** `rejected`: spans of the request that the collector did not take, for good. */
export type SpanAnswer = { retry: true; after_ms: number; error: string } | { retry: false; rejected: number; error: string | null }

type SendSpansParts = { target: OtlpTarget; fetch: typeof fetch; now: () => number }

/** Sends one request to the collector. */
export async function sendSpans(body: string, { target, fetch, now }: SendSpansParts): Promise<SpanAnswer> {
  const { url, headers, timeout_ms } = target
  const send = async (signal: AbortSignal) => {
    // A redirect would send the headers to another host.
    const response = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal })
    return { response, text: await limitBody(response, MOST_BYTES).text() }
  }
  try {
    const { response, text } = await withDeadline(send, { timeout_ms, what: 'the collector' })
    return answerOf(response, text, now())
  } catch (error) {
    return { retry: true, after_ms: 0, error: messageOf(error).slice(0, LONGEST_TEXT) }
  }
}

function answerOf({ status, ok, headers }: Response, text: string, now: number): SpanAnswer {
  if (ok) return partOf(text)
  const error = `the collector answered ${status}: ${text.slice(0, LONGEST_TEXT)}`
  if (!RETRIED.has(status)) return { retry: false, rejected: Number.POSITIVE_INFINITY, error }
  return { retry: true, after_ms: Math.min(retryAfterMs(headers.get('retry-after'), now) ?? 0, LONGEST_WAIT_MS), error }
}

/** A successful answer may reject some of the spans. */
function partOf(text: string): SpanAnswer {
  const parsed = parseJson(text)
  const answer = parsed.ok ? (parsed.value as { partialSuccess?: { rejectedSpans?: unknown; errorMessage?: unknown } } | null) : null
  const { rejectedSpans = 0, errorMessage = '' } = answer?.partialSuccess ?? {}
  const rejected = Number(rejectedSpans)
  if (!(rejected > 0)) return { retry: false, rejected: 0, error: null }
  return { retry: false, rejected, error: `the collector rejected ${rejected} spans: ${String(errorMessage).slice(0, LONGEST_TEXT)}` }
}
