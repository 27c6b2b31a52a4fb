import path from 'node:path'
import protobuf from 'protobufjs'

/**
 * The definition of OTLP 1.9.0, from github.com/open-telemetry/opentelemetry-proto (Copyright The
 * OpenTelemetry Authors, Apache License 2.0), beside this file.
 */
const root = new protobuf.Root()
root.resolvePath = (_origin, target) => path.join(import.meta.dirname, target)
root.loadSync('opentelemetry/proto/collector/trace/v1/trace_service.proto').resolveAll()
const REQUEST = root.lookupType('opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest')

/** Ids are hexadecimal, which is where OTLP differs from the JSON of other protocols. */
const IDS: Record<string, number> = { traceId: 32, spanId: 16, parentSpanId: 16 }

type AnyValue = {
  stringValue?: string
  boolValue?: boolean
  intValue?: string
  doubleValue?: number
  arrayValue?: { values: AnyValue[] }
}
type Attributes = { key: string; value: AnyValue }[]
export type OtlpSpan = {
  traceId: string
  spanId: string
  parentSpanId?: string
  flags: number
  traceState?: string
  name: string
  kind: number
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: Attributes
  links?: { traceId: string; spanId: string }[]
  status?: { code: number; message?: string }
}
type Request = { resourceSpans: { resource: { attributes: Attributes }; scopeSpans: { scope: object; spans: OtlpSpan[] }[] }[] }

/** Parses a request. Throws where it is not as the protocol defines it. */
export function parseRequest(text: string): Request {
  const request: unknown = JSON.parse(text)
  check(REQUEST, request, '')
  return request as Request
}

export const spansIn = (text: string): OtlpSpan[] =>
  parseRequest(text).resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))

export const attributesOf = ({ attributes }: { attributes: Attributes }): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, valueOf(value)]))

function valueOf({ intValue, arrayValue, ...value }: AnyValue): unknown {
  if (intValue !== undefined) return Number(intValue)
  return arrayValue ? arrayValue.values.map(valueOf) : Object.values(value)[0]
}

function check(type: protobuf.Type, value: unknown, at: string): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error(`${at} is not a ${type.name}`)
  for (const [name, inner] of Object.entries(value)) {
    const field = type.fields[name]
    if (!field) throw new Error(`${type.name} has no field ${at}.${name}`)
    if (field.repeated && !Array.isArray(inner)) throw new Error(`${at}.${name} is not a list`)
    for (const one of field.repeated ? (inner as unknown[]) : [inner]) checkField(field, one, `${at}.${name}`)
  }
  for (const { name, oneof } of type.oneofsArray) {
    if (oneof.filter((one) => one in value).length > 1) throw new Error(`${at} has several values of ${name}`)
  }
}

function checkField({ name, type, resolvedType }: protobuf.Field, value: unknown, at: string): void {
  if (resolvedType instanceof protobuf.Type) return check(resolvedType, value, at)
  const allowed = resolvedType instanceof protobuf.Enum ? Object.hasOwn(resolvedType.valuesById, String(value)) : true
  const is_id = Object.hasOwn(IDS, name) && type === 'bytes'
  if (!allowed || !(is_id ? isId(value, IDS[name] ?? 0) : isScalar(type, value, resolvedType !== null)))
    throw new Error(`${at} is not of the type ${type}: ${JSON.stringify(value)}`)
}

const isId = (value: unknown, digits: number): boolean =>
  typeof value === 'string' && new RegExp(`^[0-9a-f]{${digits}}$`).test(value) && /[^0]/.test(value)

function isScalar(type: string, value: unknown, is_enum: boolean): boolean {
  if (is_enum) return typeof value === 'number'
  if (type === 'string' || type === 'bytes') return typeof value === 'string'
  if (type === 'bool') return typeof value === 'boolean'
  if (type === 'double') return typeof value === 'number' && Number.isFinite(value)
  if (type === 'int64') return typeof value === 'string' && /^-?\d{1,19}$/.test(value)
  if (type.endsWith('64')) return typeof value === 'string' && /^\d{1,20}$/.test(value)
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 32
}
