import type { ScopeApi } from '../contract/scope-api.ts'
import type { ScopeFeature } from './feature.ts'
import type { Collaborators } from './wiring.ts'

/** Calls of a scope from outside that a feature answers, with the parts of the scope. */
type Calls = {
  readonly [Name in keyof ScopeApi]?: (scope: Collaborators, ...asked: Parameters<ScopeApi[Name]>) => ReturnType<ScopeApi[Name]>
}

/** The parts of a feature in a scope. */
export type FeatureInScope = {
  readonly calls?: Calls
  /** Builds its parts from the scope's, when the scope wakes. */
  readonly inScope?: (scope: Collaborators) => ScopeFeature | readonly ScopeFeature[] | null
}

/** Wires the features into a scope, each after those before it. */
export function install(scope: Collaborators, features: readonly FeatureInScope[]): void {
  for (const phases of features.flatMap(({ inScope }) => inScope?.(scope) ?? [])) {
    scope.features.push(phases)
    if (phases.due) scope.alarm.source(phases.due.bind(phases))
    for (const [topic, send] of Object.entries(phases.topics ?? {})) scope.outbox.topic(topic, { send })
    if (phases.tools) scope.toolbox.offer(scope.own_tools, phases.tools)
    if (phases.proofs) scope.may_act.proveBy(phases.proofs)
    if (phases.archived) scope.history.readBy(phases.archived)
    if (phases.archiving) scope.retention.archiveBy(phases.archiving)
  }
}

/** A part of a feature, built once in each scope, when it is first asked for. */
export function inEachScope<Part>(build: (scope: Collaborators) => Part): (scope: Collaborators) => Part {
  const built = new WeakMap<Collaborators, { part: Part }>()
  return (scope) => {
    const known = built.get(scope) ?? { part: build(scope) }
    built.set(scope, known)
    return known.part
  }
}

/** Adds the calls that features answer to a class of scopes. RPC finds methods of a class only. */
export function addCalls(prototype: object, partsOf: (scope: object) => Collaborators, features: readonly FeatureInScope[]): void {
  for (const [name, call] of features.flatMap(({ calls = {} }) => Object.entries(calls))) {
    if (name in prototype) continue
    const answer = call as (scope: Collaborators, ...asked: unknown[]) => unknown
    const value = async function (this: object, ...asked: unknown[]): Promise<unknown> {
      return answer(partsOf(this), ...asked)
    }
    Object.defineProperty(prototype, name, { value, configurable: true, writable: true })
  }
}
