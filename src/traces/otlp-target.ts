import { oncePer } from '../base/once-per.ts'
import { pairsOf } from '../base/secrets.ts'
import { warn } from '../base/warn.ts'

/** The variables of OpenTelemetry's specification that Reflex reads. */
export type OtlpVariables = {
  OTEL_EXPORTER_OTLP_ENDPOINT?: string
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT?: string
  OTEL_EXPORTER_OTLP_HEADERS?: string
  OTEL_EXPORTER_OTLP_TRACES_HEADERS?: string
  OTEL_EXPORTER_OTLP_TIMEOUT?: string
  OTEL_TRACES_SAMPLER_ARG?: string
  OTEL_SERVICE_NAME?: string
  OTEL_RESOURCE_ATTRIBUTES?: string
  CF_VERSION_METADATA?: { id: string }
}
export type OtlpTarget = {
  url: string
  headers: Headers
  resource: Record<string, string>
  /** The share of traces that are sent. */
  ratio: number
  timeout_ms: number
}

const TIMEOUT_MS = 10_000
const LONGEST_TIMEOUT_MS = 60_000

/** Null without an endpoint, or with variables that cannot be used. */
export const otlpTargetOf = oncePer((variables: OtlpVariables): OtlpTarget | null => {
  try {
    return targetOf(variables)
  } catch {
    // The error may quote a header.
    warn({ message: 'no spans are exported: an OTEL_EXPORTER_OTLP_… variable is not a valid URL, or not valid headers' })
    return null
  }
})

function targetOf(variables: OtlpVariables): OtlpTarget | null {
  const url = urlOf(variables)
  if (url === null) return null
  const { OTEL_EXPORTER_OTLP_TRACES_HEADERS, OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_TIMEOUT } = variables
  const headers = new Headers(pairsOf(OTEL_EXPORTER_OTLP_TRACES_HEADERS ?? OTEL_EXPORTER_OTLP_HEADERS))
  headers.set('content-type', 'application/json')
  const timeout_ms = Number(OTEL_EXPORTER_OTLP_TIMEOUT) || TIMEOUT_MS
  return { url, headers, resource: resourceOf(variables), ratio: ratioOf(variables), timeout_ms: Math.min(timeout_ms, LONGEST_TIMEOUT_MS) }
}

function urlOf({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: own, OTEL_EXPORTER_OTLP_ENDPOINT: shared }: OtlpVariables): string | null {
  if (own) return new URL(own).href
  if (!shared) return null
  const url = new URL(shared)
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/v1/traces`
  return url.href
}

function resourceOf({ OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, CF_VERSION_METADATA }: OtlpVariables): Record<string, string> {
  return {
    'service.name': 'reflex',
    ...(CF_VERSION_METADATA && { 'service.version': CF_VERSION_METADATA.id }),
    'cloud.provider': 'cloudflare',
    'cloud.platform': 'cloudflare.workers',
    ...pairsOf(OTEL_RESOURCE_ATTRIBUTES),
    ...(OTEL_SERVICE_NAME && { 'service.name': OTEL_SERVICE_NAME }),
  }
}

function ratioOf({ OTEL_TRACES_SAMPLER_ARG: given }: OtlpVariables): number {
  if (given === undefined || given.trim() === '') return 1
  const ratio = Number(given)
  if (ratio >= 0 && ratio <= 1) return ratio
  warn({ message: 'OTEL_TRACES_SAMPLER_ARG is not a number from 0 to 1; every trace is exported' })
  return 1
}
