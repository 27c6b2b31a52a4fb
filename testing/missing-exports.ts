import { env } from 'cloudflare:workers'
import type { BoundExports } from './bound-exports.ts'

/**
 * Names that `wrangler.toml` needs and the module of a Worker does not export, such as `Ledger` or
 * `default.queue`.
 */
export function missingExports(worker: object): string[] {
  const { BOUND_EXPORTS: bound } = env as unknown as { BOUND_EXPORTS: BoundExports }
  const exported = worker as Record<string, unknown>
  const handlers = (exported['default'] ?? {}) as Record<string, unknown>
  return [
    ...bound.classes.filter((name) => typeof exported[name] !== 'function'),
    ...bound.handlers.filter((name) => typeof handlers[name] !== 'function').map((name) => `default.${name}`),
  ]
}
