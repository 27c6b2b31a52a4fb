import { v7 as uuidv7, validate as isUuid } from 'uuid'
import { z } from 'zod'

const MAX_NAME = 128
export const DEFAULT_SCOPE = 'default'
export const scopeName = z
  .string()
  .regex(/^(?!\.{1,2}$)[A-Za-z0-9._:@/-]{1,128}$/, 'a scope is 1 to 128 characters of A-Z a-z 0-9 . _ : @ - and /, and neither . nor ..')
export const TRACE_ID = [/^(?!0{32}$)[0-9a-f]{32}$/, 'a trace id is 32 lower-case hex digits, and not zero'] as const
/** As in W3C trace context, and ids of events. No input sets what \`Noted\` has. */
const eventMeta = z.object({
  trace_id: z.string().regex(...TRACE_ID),
  correlation_id: z.string().max(MAX_NAME).nullable(),
  causation_id: z.string().max(MAX_NAME).nullable(),
  parent_id: z.optional(z.string().regex(/^[0-9a-f]{16}$/, 'a parent id is 16 lower-case hex digits')),
  trace_flags: z.optional(z.string().regex(/^[0-9a-f]{2}$/, 'trace flags are 2 lower-case hex digits')),
  tracestate: z.optional(z.string().regex(/^[\x20-\x7e]{0,512}$/, 'a trace state has at most 512 printable characters')),
})

const common = {
  id: z.string().check(z.minLength(1), z.maxLength(MAX_NAME), z.regex(/^(?!(?:\.{1,2}|replay)$)/, 'an id is neither ., .. nor replay')),
  scope: scopeName,
  source: z.string().min(1).max(MAX_NAME),
  timestamp: z.iso.datetime(),
  meta: eventMeta,
}

/** A type of event: its literal `type` and its own fields, beside those that every event has. */
export function eventType<const Type extends string, Shape extends z.ZodRawShape>(type: Type, shape: Shape) {
  return z.object({ ...common, type: z.literal(type), ...shape })
}

export const webSocketMessage = eventType('ws.message', { connection_id: z.string().min(1).max(MAX_NAME), content: z.string() })
export const httpRequest = eventType('http.request', { method: z.string().min(1), path: z.string().min(1), body: z.json().optional() })
export const fileChange = eventType('file.change', { path: z.string().min(1), change_type: z.enum(['created', 'modified', 'deleted']) })
export const timerTick = eventType('timer.tick', { timer_name: z.string().min(1) })
export const builtInEvents = [webSocketMessage, httpRequest, fileChange, timerTick] as const

type Noted = { sender: string; role: 'admin' | 'operator'; sent_id: string; heard: true }
type Meta = z.infer<typeof eventMeta> & { [Name in keyof Noted]?: Noted[Name] | undefined }
export type Event = { type: string; id: string; scope: string; source: string; timestamp: string; meta: Meta }
export type EventSchema = z.ZodObject<typeof common & { type: z.ZodLiteral<string> }>
export type EventOf<Schema extends z.ZodType> = z.infer<Schema>

/** The discriminated union of event types. Unknown fields are kept. */
export function eventUnion<const All extends readonly [EventSchema, ...EventSchema[]]>(schemas: All): z.ZodType<z.infer<All[number]>>
export function eventUnion([first, ...rest]: readonly [EventSchema, ...EventSchema[]]): z.ZodType {
  return z.discriminatedUnion('type', [first.loose(), ...rest.map((schema) => schema.loose())])
}

export type Defaults = { now: number; source: string; scope?: string; trace?: Partial<z.infer<typeof eventMeta>> | undefined }

export function withDefaults(input: Record<string, unknown>, { now, source, scope, trace }: Defaults): Record<string, unknown> {
  const meta = input['meta'] ?? {}
  return {
    ...input,
    id: input['id'] ?? uuidv7(),
    scope: input['scope'] ?? scope ?? DEFAULT_SCOPE,
    source: input['source'] ?? source,
    timestamp: utc(input['timestamp'], now),
    meta: isRecord(meta) ? { correlation_id: null, causation_id: null, ...meta, ...placeIn(trace, meta['trace_id']) } : meta,
  }
}

/** A UUID, as other systems name their traces, is kept as its 32 hex digits. */
function placeIn(trace: Defaults['trace'], own: unknown): NonNullable<Defaults['trace']> {
  if ((own ?? null) === null) return trace ?? { trace_id: newTraceId() }
  return typeof own === 'string' && isUuid(own) ? { trace_id: own.replaceAll('-', '').toLowerCase() } : {}
}
const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)

/** A child of `event` with its trace and sender. Names its cause and the chain's first event. */
export function derive<Child extends { type: string }>(event: Event, child: Child, now: number): Child & Event {
  const { trace_id, correlation_id, sender } = event.meta
  const meta = { trace_id, correlation_id: correlation_id ?? event.id, causation_id: event.id, ...(sender && { sender }) }
  return { id: uuidv7(), scope: event.scope, source: event.source, timestamp: new Date(now).toISOString(), ...child, meta }
}

export const randomHex = (bytes: number): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(bytes)), (byte) => byte.toString(16).padStart(2, '0')).join('')
export const newTraceId = (): string => uuidv7({ msecs: Date.now() }).replaceAll('-', '')
export const newSpanId = (): string => randomHex(8)

const anyTime = z.iso.datetime({ offset: true, local: true })
/** Converts times to UTC with milliseconds, which sort as text. A time without a zone is UTC. */
function utc(value: unknown, now: number): unknown {
  if (value === undefined || value === null) return new Date(now).toISOString()
  const isTime = typeof value === 'string' && anyTime.safeParse(value).success
  return isTime ? new Date(/(?:Z|[+-]\d\d:?\d\d)$/.test(value) ? value : `${value}Z`).toISOString() : value
}
