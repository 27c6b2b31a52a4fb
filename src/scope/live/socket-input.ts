import { z } from 'zod'
import { messageOf } from '../../base/error-text.ts'
import type { Event } from '../../core/event.ts'
import { approvalDecision, type ApprovalDecision } from '../../contract/approval.ts'
import { fitsBytes } from '../../base/byte-length.ts'
import { limits } from '../../base/limits.ts'
import { type EventRules, parseEvent } from '../../events/parse-event.ts'
import { jsonValue } from '../../base/json.ts'
import { fromZod } from '../../contract/problem.ts'
import { type FieldError } from '../../base/check-json.ts'

const mark = z.object({ type: z.literal('mark'), sent: z.int().min(0) })
const LONGEST_MARK = 100

/** A `mark` that came back: how many bytes the client has read. */
export function readMark(message: string | ArrayBuffer): number | null {
  if (typeof message !== 'string' || message.length > LONGEST_MARK || !message.includes('"mark"')) return null
  return mark.safeParse(jsonValue(message)).data?.sent ?? null
}

/** `id` is the id of the refused event or approval, if it could be read. */
export type SocketInput =
  | { ok: true; kind: 'event'; event: Event }
  | { ok: true; kind: 'decision'; decision: ApprovalDecision }
  | { ok: false; id: string | null; errors: FieldError[] }

const refused = (message: string): SocketInput => ({ ok: false, id: null, errors: [{ path: '', message }] })

/** Parses a message: an event, `{"content": "…"}` or a decision on an approval. Never throws. */
export function readSocketInput(message: string | ArrayBuffer, connection_id: string, rules: EventRules): SocketInput {
  if (typeof message !== 'string') return refused('binary messages are not understood: send JSON as text')
  if (!fitsBytes(message, limits.body_bytes)) return refused(`a message is at most ${limits.body_bytes} bytes; this one has more`)
  let value: unknown
  try {
    value = JSON.parse(message)
  } catch (error) {
    return refused(`not JSON: ${messageOf(error)}`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return refused('send one event, or {"content": "…"}, as a JSON object')
  const input = value as Record<string, unknown>
  if (input['type'] === 'approve' || input['type'] === 'reject') return readDecision(input)
  const shorthand = !('type' in input) && 'content' in input
  const chat = { connection_id, source: `ws:${connection_id}`.slice(0, 128), ...input, type: 'ws.message' }
  const parsed = parseEvent(shorthand ? chat : input, rules)
  return parsed.ok ? { ok: true, kind: 'event', event: parsed.event } : { ok: false, id: idIn(input, 'id'), errors: parsed.errors }
}

function readDecision(input: Record<string, unknown>): SocketInput {
  const parsed = approvalDecision.safeParse(input)
  if (parsed.success) return { ok: true, kind: 'decision', decision: parsed.data }
  return { ok: false, id: idIn(input, 'approval_id'), errors: fromZod(parsed.error) }
}

function idIn(input: Record<string, unknown>, field: string): string | null {
  const id = input[field]
  return typeof id === 'string' ? id.slice(0, 128) : null
}
