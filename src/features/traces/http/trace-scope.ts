import { coversScope, type Principal } from '../../../contract/principal.ts'
import type { Env } from '../../../env.ts'
import { demandWhole } from '../../../store/packs/missing.ts'
import { storeOf } from '../../../store/store.ts'
import { callsOfTraces, eventsOfTraces } from '../../../store/traces/traces.ts'
import { demandCoverage } from '../../../http/auth/middleware.ts'
import { invalid, notFound } from '../../../http/problems/refusals.ts'

/** Scopes that one answer about a trace covers. */
export const MOST_SCOPES = 20

/** The scopes whose logs have the trace: the named one, or the scopes of its events and calls. */
export async function scopesOfTrace(
  env: Env,
  principal: Principal,
  trace_id: string,
  named?: string,
): Promise<readonly [string, ...string[]]> {
  if (named !== undefined) {
    demandCoverage(principal, [{ scope: named }])
    return [named]
  }
  const missing = new Set<string>()
  const [events, calls] = await Promise.all([
    eventsOfTraces(storeOf(env), [trace_id], principal.scopes, { missing }),
    callsOfTraces(storeOf(env), [trace_id], principal.scopes),
  ])
  demandWhole({ missing })
  const scopes = Array.from(new Set([...events, ...calls].map(({ scope }) => scope))).filter((scope) => coversScope(principal, scope))
  const [scope, ...others] = scopes.toSorted()
  if (scope === undefined) throw notFound(`There is no trace ${trace_id} in the scopes of this key. Name its scope if it has just begun.`)
  if (scopes.length > MOST_SCOPES)
    throw invalid(
      `The trace went through ${scopes.length} scopes, more than ${MOST_SCOPES}. Name one of them as \`scope\`, such as ${scope}.`,
    )
  return [scope, ...others]
}
