import { useRoute } from 'preact-iso'

/**
 * A scope in an address of the dashboard: `ssh/bastion` is `/scopes/ssh~bastion`. No name has a
 * tilde, and Workers Assets decodes an encoded slash by a redirect.
 */
export const scopeLink = (scope: string): string => `/scopes/${scope.replaceAll('/', '~')}`
/** The scope that the address of its page names. */
export const useScopeName = (): string => (useRoute().params['scope'] ?? '').replaceAll('~', '/')
export const traceLink = (trace_id: string, span_id?: string): string =>
  `/traces/${trace_id}${span_id === undefined ? '' : `?span=${span_id}`}`

export const ScopeLink = ({ scope }: { scope: string }) => (
  <a href={scopeLink(scope)}>
    <bdi>{scope}</bdi>
  </a>
)
export const TraceLink = ({ id, span, text = 'Trace' }: { id: string; span?: string; text?: string }) => (
  <a href={traceLink(id, span)}>{text}</a>
)

export const dealLink = (id: string): string => `/market?deal=${encodeURIComponent(id)}`
export const accountLink = (id: string): string => `/market?account=${encodeURIComponent(id)}`
