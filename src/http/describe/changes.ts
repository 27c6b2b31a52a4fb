import type { Context } from 'hono'
import { withinTime } from '../../base/deadline.ts'
import { deploymentHider } from '../../base/secrets.ts'
import { warn } from '../../base/warn.ts'
import type { Change } from '../../contract/change.ts'
import type { AnyOperation } from '../../contract/operation.ts'
import { baseRoles, coversScope, type Principal } from '../../contract/principal.ts'
import { scopeOfOwner } from '../../contract/reflex.ts'
import { scopeName } from '../../core/event.ts'
import { traceContextOf } from '../../events/traceparent.ts'
import { QUICK_MS } from '../../store/store.ts'
import type { AuthEnv } from '../auth/middleware.ts'

/** The longest target; ids are shorter. */
const MOST_CHARACTERS = 256

/** True for requests of operators that do not only read, and for those that say so. */
export const isChange = ({ at, roles, change }: AnyOperation): boolean =>
  change ?? (!at.startsWith('get ') && roles !== null && roles.every((role) => role === 'operator' || role === 'admin'))

type Done = { body: unknown; answer: unknown }

/**
 * Tells the features of a change that has happened. A failure cannot undo it: the Worker's log has
 * the change then. The answer does not wait for a slow database.
 */
export async function tellChange(c: Context<AuthEnv>, op: AnyOperation, done: Done): Promise<void> {
  const change = changeOf(c, op, done)
  const told = c.var.changed(change).catch((error: unknown) => warn({ message: 'a change could not be recorded', ...change, error }))
  c.executionCtx.waitUntil(told)
  await withinTime(() => told, { timeout_ms: QUICK_MS })
}

function changeOf({ env, req, var: { principal, scope: asked } }: Context<AuthEnv>, op: AnyOperation, { body, answer }: Done): Change {
  const answered = fieldsOf(answer)
  const scope = (asked as string | undefined) ?? scopeIn(principal, [answered, fieldsOf(body)])
  const named = targetIn(req.param(), answered)
  const trace_id = answered['trace_id'] ?? traceContextOf(req.header('traceparent'))?.trace_id
  return {
    at: Date.now(),
    key_id: principal.key_id,
    key_name: principal.name,
    role: baseRoles.find((role) => principal.roles.includes(role)) ?? '',
    action: op.id,
    method: req.method,
    scope,
    reach: scope === null ? principal.scopes : [scope],
    target: named === null ? null : deploymentHider(env).text(named).slice(0, MOST_CHARACTERS),
    trace_id: typeof trace_id === 'string' ? trace_id : null,
  }
}

type Fields = Readonly<Record<string, unknown>>
const fieldsOf = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {})

/** The scope that the answer or the body names, or whose agent owns what was changed. */
function scopeIn(principal: Principal, places: readonly Fields[]): string | null {
  const named = places.flatMap(({ scope, owner }) => [scope, typeof owner === 'string' ? scopeOfOwner(owner) : null])
  const found = named.find((name) => scopeName.safeParse(name).success) as string | undefined
  return found !== undefined && coversScope(principal, found) ? found : null
}

/** The last part of the path below the scope, or the id and version that the answer has. */
function targetIn({ scope: _scope, ...path }: Record<string, string>, answered: Fields): string | null {
  const [last] = Object.values(path).toReversed()
  if (last !== undefined) return last
  const field = 'id' in answered ? 'id' : Object.keys(answered).find((name) => name.endsWith('_id'))
  const id = field === undefined ? undefined : answered[field]
  if (typeof id !== 'string') return null
  const { version } = answered
  return typeof version === 'string' || typeof version === 'number' ? `${id}@${version}` : id
}
