import { useRoute } from 'preact-iso'
import { query } from '../api/request.ts'
import { visible } from './text.tsx'

/**
 * A scope in an address of the dashboard: `ssh/bastion` is `/scopes/ssh~bastion`. No name has a
 * tilde, and Workers Assets decodes an encoded slash by a redirect.
 */
export const scopeLink = (scope: string): string => `/scopes/${scope.replaceAll('/', '~')}`
/** The scope that the address of its page names. */
export const useScopeName = (): string => (useRoute().params['scope'] ?? '').replaceAll('~', '/')
export const traceLink = (trace_id: string, span_id?: string, scope?: string): string =>
  `/traces/${trace_id}${query({ span: span_id, scope })}`

export const ScopeLink = ({ scope }: { scope: string }) => (
  <a href={scopeLink(scope)}>
    <bdi>{scope}</bdi>
  </a>
)
/** On the page of a scope it names the scope, whose log has the trace before D1 does. */
export function TraceLink({ id, span, text = 'Trace' }: { id: string; span?: string; text?: string }) {
  const scope = useScopeName()
  return <a href={traceLink(id, span, scope)}>{text}</a>
}

export const dealLink = (id: string): string => `/market?deal=${encodeURIComponent(id)}`
const accountLink = (id: string): string => `/market?account=${encodeURIComponent(id)}`
export const AccountLink = ({ id }: { id: string }) => <a href={accountLink(id)}>{visible(id)}</a>
