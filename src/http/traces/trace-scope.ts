import { coversScope, type Principal } from '../../contract/principal.ts'
import type { Env } from '../../env.ts'
import { storeOf } from '../../store/store.ts'
import { callsOfTraces, eventsOfTraces } from '../../store/traces.ts'
import { demandCoverage, invalid, notFound } from '../problems/refusals.ts'

/** The scope whose log has the trace: the one that is named, or the one of its events and calls. */
export async function scopeOfTrace(env: Env, principal: Principal, trace_id: string, named?: string): Promise<string> {
  if (named !== undefined) {
    demandCoverage(principal, [{ scope: named }])
    return named
  }
  const [events, calls] = await Promise.all([
    eventsOfTraces(storeOf(env), [trace_id], principal.scopes),
    callsOfTraces(storeOf(env), [trace_id], principal.scopes),
  ])
  const places = events.length > 0 ? events : calls
  const scopes = Array.from(new Set(places.map(({ scope }) => scope))).filter((scope) => coversScope(principal, scope))
  const [scope] = scopes
  if (scope === undefined) throw notFound(`There is no trace ${trace_id} in the scopes of this key. Name its scope if it has just begun.`)
  if (scopes.length > 1)
    throw invalid(`The trace went through ${scopes.length} scopes. Name one of them as \`scope\`: ${scopes.join(', ')}.`)
  return scope
}
