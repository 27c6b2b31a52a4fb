import { z } from 'zod'
import type { Action } from './action.ts'

/** It stands in paths as `id` or `id@version`, so it has neither `/` nor `@`. */
export const reflexId = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/, 'an id is 1 to 128 characters of A-Z a-z 0-9 . _ : and -')
export const reflexVersionNumber = z.int().min(1).max(1_000_000)

/** `draft`: kept, not run on events. `shadow`: run on live events without acting. `active`: it acts. `retired`: never run again. */
export const reflexStates = ['draft', 'shadow', 'active', 'retired'] as const
export const reflexState = z.enum(reflexStates)
export type ReflexState = z.infer<typeof reflexState>

/**
 * Where a version came from. `by` is a key's name, a label for people, or the agent of a scope,
 * which is then named.
 */
export type Provenance = {
  by: string
  scope: string | null
  template: string | null
  /** What it was copied from. */
  origin: { id: string; version: number; hash: string } | null
}

/**
 * One immutable version of a reflex: `code` with its `hash` and `description` never change, its
 * `state` does. `owner` is the name of the key that made it, for people. `owner_id` is whose it is:
 * that key's id; both are `scope:NAME` for what the agent of a scope wrote. `scopes` are the
 * patterns that the owner may touch: elsewhere it runs only where a chain names its version.
 */
export type ReflexVersion = {
  id: string
  version: number
  hash: string
  owner: string
  owner_id: string
  scopes: string[]
  description: string
  code: string
  state: ReflexState
  /** Why it is in this state, where it did not get there by its registration. */
  state_reason: string | null
  provenance: Provenance
  created_at: number
}

const AGENT = 'scope:'

/** What the agent of a scope owns: no key has such an id, and none is named so. */
export const agentOwner = (scope: string): string => `${AGENT}${scope}`

/** The scope whose agent it is, or null for a key. */
export const scopeOfOwner = (owner_id: string): string | null => (owner_id.startsWith(AGENT) ? owner_id.slice(AGENT.length) : null)

/** A chain's soft reference: without a version it follows the artifact. `rate`: fires in a minute at most; `cooldown_s`: from one fire to the next at least. */
export const reflexReference = z.strictObject({
  id: reflexId,
  version: reflexVersionNumber.optional().meta({ description: 'Unset: it follows the reflex, whichever version is active or in shadow.' }),
  cooldown_s: z.number().min(0).max(86_400).optional().meta({ description: 'Seconds from one fire to the next, at least.' }),
  rate: z.int().min(1).max(60_000).optional().meta({ description: 'Fires in a minute, at most.' }),
})
export type ReflexReference = z.infer<typeof reflexReference>

/** Something that was done about an event, as far as two decisions can be compared by it. A tool with an idempotency key is the same effect under the same key, another under the same arguments. */
export type Act =
  | { act: 'call_tool'; tool: string; idempotence_key: string | null; arguments_hash: string }
  | { act: 'emit_event'; event_type: string }
  | { act: 'reply'; content: string }
  | { act: 'set_scratch'; key: string; value: unknown }
  | { act: 'run_skill'; skill_id: string; inputs_hash: string }
  | { act: 'other'; action_type: Action['action_type'] }

/** What was decided about one event: by a turn, which may have considered others with it, or by a reflex; no acts where it came to nothing. */
export type Decision = { by: 'turn' | 'reflex'; acts: Act[] }

/** An event as a reflex saw or would have seen it, and what was decided then; null while that is open. `rebuilt`: nothing was recorded, so that scratch, thinking and recent actions are empty. */
export type Recording = {
  seq: number
  event_id: string
  at: string
  source: 'recorded' | 'rebuilt'
  context: unknown
  decision: Decision | null
}

/** A tool call's identity: two calls of a tool are the same one if their keys are, or, without keys, their arguments. */
export type CallKeys = { idempotence_key: string | null; arguments_hash: string }
/** Null where there is no such tool, or it does not take such arguments. */
export type KeyOf = (tool: string, args: unknown) => CallKeys | null
export type ToolCall = { tool: string; args: unknown }
