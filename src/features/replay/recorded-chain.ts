import { z } from 'zod'
import type { OutsideTools } from '../../agent/toolbox.ts'
import { isJsonFields } from '../../base/json.ts'
import type { PassReason, ReflexEntry } from '../../contract/log-entry.ts'
import { agentOwner, type ReflexReference, type ReflexVersion } from '../../contract/reflex.ts'
import { ContextJson, type ShownContext } from '../../reflexes/context/context-json.ts'
import { FUEL_PER_BATCH, FUEL_PER_RUN, type ChainLink } from '../../reflexes/decide.ts'
import { ReflexHistory } from '../../reflexes/history.ts'
import { sampleContext, type RecentAction, type ReflexContext } from '../../reflexes/reflex-context.ts'
import { defineTool } from '../../tools/define-tool.ts'
import type { Given } from './given.ts'
import { Unrecorded } from './report.ts'
import { marketToolNames } from '../../contract/genesis.ts'

/**
 * The contexts that reflexes were shown, by hash: an entry does not repeat the context of another.
 * If none ran, the one that the scope rebuilt.
 */
export function contextsOf(steps: readonly ReflexEntry[], rebuilt?: unknown): Map<string, ReflexContext> {
  const found = new Map<string, ReflexContext>()
  if (steps.length === 0 && isJsonFields(rebuilt)) found.set('', rebuilt as never)
  for (const { context, context_hash } of steps) {
    if (context_hash !== null && isJsonFields(context) && isJsonFields(context['event'])) found.set(context_hash, context as never)
  }
  return found
}

export function showRecorded(
  steps: readonly ReflexEntry[],
  contexts: ReadonlyMap<string, ReflexContext>,
): (recent: RecentAction[]) => ShownContext {
  const [base] = contexts.values()
  const fits = !steps.some((step) => step.kind === 'reflex-passed' && step.reason === 'too_large')
  return (recent_actions) => {
    if (!base && fits) throw new Unrecorded('the context that reflexes were shown is not in the recording')
    const context = { ...(base ?? sampleContext), recent_actions }
    return { context, json: ContextJson.of(context), hash: '', fits }
  }
}

/** Enough fuel, unless the log says that the events before had used it up. */
export function fuelLeft(steps: readonly ReflexEntry[]): number {
  if (!steps.some((step) => step.kind === 'reflex-passed' && step.reason === 'fuel')) return FUEL_PER_BATCH
  // A step that did not run has no fuel, and costs nothing, such as all after the fuel was used up.
  return steps.reduce((sum, { fuel }) => sum + (fuel > 0 ? fuel + FUEL_PER_RUN : 0), 0)
}

export function recordedHistory(who: string, steps: readonly ReflexEntry[], contexts: ReadonlyMap<string, ReflexContext>): ReflexHistory {
  const step = steps.find(({ reflex_id, version, state }) => who === (state === 'shadow' ? `${reflex_id}@${version}` : reflex_id))
  const { recent_actions = [] } = contexts.get(step?.context_hash ?? '') ?? {}
  const fires = recent_actions.map(({ at, event_id, action }) => ({ at, event_id, action }))
  const last = fires.at(-1)
  return new ReflexHistory({
    fires,
    last_at: last ? Date.parse(last.at) : null,
    minute: 0,
    fired: 0,
    ...step?.pace,
  })
}

type Origin = { scope: string; given: Given }

/** The versions that acted and watched, by what they left in the log. */
export function linkOf(reference: ReflexReference, steps: readonly ReflexEntry[], from: Origin): ChainLink {
  const own = steps.filter(({ reflex_id }) => reflex_id === reference.id)
  const active = own.find(({ state }) => state !== 'shadow')
  const absent = active?.kind === 'reflex-passed' && isAbsence(active.reason) ? { reason: active.reason, detail: active.error ?? '' } : null
  return {
    reference,
    acting: active && !absent ? versionOf(active, 'active', from) : null,
    watching: own.filter(({ state }) => state === 'shadow').map((step) => versionOf(step, 'shadow', from)),
    absent: active ? absent : { reason: 'missing', detail: 'no reflex of this link ran when the event was recorded' },
  }
}

const isAbsence = (reason: PassReason): reason is 'missing' | 'suspended' | 'uncertified' =>
  reason === 'missing' || reason === 'suspended' || reason === 'uncertified'

export function versionOf(
  { reflex_id: id, version, hash }: ReflexEntry,
  state: 'active' | 'shadow',
  { scope, given }: Origin,
): ReflexVersion {
  const program = given.program(hash)
  const owner = agentOwner(scope)
  return {
    id,
    version: version ?? 1,
    hash: hash ?? '',
    code: program.code,
    state,
    state_reason: null,
    by_proof: false,
    sealed: program.sealed ?? false,
    sharing: 'project',
    owner,
    owner_id: owner,
    scopes: [scope],
    description: '',
    provenance: { by: owner, scope, template: null, origin: null },
    created_at: 0,
  }
}

/** Tools of other servers: the recording says which calls were permitted. */
export function recordedTools(steps: readonly ReflexEntry[]): OutsideTools {
  const refusals = new Map<string, string>()
  for (const step of steps) if (step.kind === 'reflex-passed' && step.reason === 'refused') refusals.set('', step.error ?? '')
  return {
    ready: async () => {},
    available: () => ({}),
    find: (name) => {
      if (!OUTSIDE.test(name)) return null
      const detail = refusals.get('')
      return detail === undefined ? { ok: true, definition: ANY_INPUT } : { ok: false, detail }
    },
  }
}

export const OUTSIDE = /^(?:http|mcp|caller)\./

const ANY_INPUT = defineTool({
  description: '',
  input: z.unknown(),
  execute: () => Promise.reject(new Unrecorded('a replay calls no tool')),
})

/** The scope's own tools that a reflex may call, by name. */
export const ownTools = [
  { write_reflex: ANY_INPUT, update_agent_config: ANY_INPUT },
  Object.fromEntries(marketToolNames.map((name) => [name, ANY_INPUT])),
] as const
