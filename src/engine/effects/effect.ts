import { z } from 'zod'
import type { ToolDefinition } from '../../tools/define-tool.ts'
import { byteLength, DEEPEST, isTooDeep, partsIn, type Json } from '../../base/json.ts'
import { limits } from '../../base/limits.ts'
import type { EditedCall } from '../../contract/held-call.ts'
import type { Cause, EffectEnd, EntryHead, StepPlace } from '../../contract/log-entry.ts'
import { messageOf } from '../../base/error-text.ts'
import type { Phase, StepEnd } from '../../skills/runner/ports.ts'
import type { Unit } from '../../kernel/unit.ts'
import type { GuardedWork } from '../upkeep/guard.ts'
import type { Env } from '../../env.ts'
import type { Event } from '../../core/event.ts'
import { deploymentHider, secretHider, type SecretHider } from '../../base/secrets.ts'
import { namedIn, withSecrets } from '../../skills/plan/template.ts'
import { isForScope, secretOf } from '../../tools/tool-secrets.ts'

/** `call`: a tool that a turn, a reflex or an operator called. */
type EffectPhase = 'call' | Phase
/** The key of an effect. `owner` is its turn, action, run or operator call. */
export type EffectPlace = { owner: string; phase: EffectPhase; place: number }

export type EffectRequest = {
  tool: string
  definition: ToolDefinition
  input: unknown
  cause: Cause
  turn_id: string | null
  /** The step of a plan that this effect is: its journal row is the step's as well. */
  step?: EffectPlace
  /** The caller's key, for a tool without its own. */
  key?: string | null
  /** Earlier turns and sequences on the same events. Their effects are not repeated. */
  earlier_turns: readonly string[]
  /** Ids of their effects that have answered another call already. */
  answered?: ReadonlySet<string>
  head: EntryHead
  signal: AbortSignal
  timeout_ms: number
  /** Secrets of the deployment that the input may name; only the call itself gets their values. */
  secrets?: readonly string[]
  /** The turn named the tools that it needs, and this one is not among them. */
  unneeded?: boolean
  /** Words that direct it, beside the context. */
  words?: Event
  /** A person asked for this call, or approved it: it may touch anchors. */
  approved?: boolean
  /** A person changed it before approving it: the gate judges what they were not asked about. */
  edited?: EditedCall
  /** Removes values from the log, in addition to fields that are secret by name. */
  hide?: (value: Json) => Json
}

/** A step's place in its run, for the log. */
export const stepOf = ({ owner, phase, place }: EffectPlace): StepPlace | undefined =>
  phase === 'call' ? undefined : { run_id: owner.slice('run:'.length), phase, index: place }

export const ownerOfRun = (run_id: string): string => `run:${run_id}`

/** The work that a failure of this effect is counted against: its run or its reflex's action. */
export function effectWork({ turn_id, cause, step }: Pick<EffectRequest, 'turn_id' | 'cause' | 'step'>): GuardedWork | undefined {
  if (step) return { kind: 'run', id: step.owner.slice('run:'.length) }
  return turn_id !== null && 'by' in cause && cause.by.startsWith('reflex:') ? { kind: 'action', id: turn_id } : undefined
}

/** The parsed input. Throws if it is invalid, or if the journal could not hold it as it is. */
export function effectInput({ tool, definition, input }: Pick<EffectRequest, 'tool' | 'definition' | 'input'>): unknown {
  if (isTooDeep(input)) throw new TypeError(`tool ${tool} was called with bad input: it is nested more than ${DEEPEST} levels deep`)
  const parsed = definition.input.safeParse(input)
  if (!parsed.success) throw new TypeError(`tool ${tool} was called with bad input: ${z.prettifyError(parsed.error)}`)
  const text = JSON.stringify(parsed.data) ?? ''
  // JSON has no such number: it would be journalled and sent as null.
  const endless = text.includes('null')
    ? partsIn(parsed.data).find(({ value }) => typeof value === 'number' && !Number.isFinite(value))
    : undefined
  if (endless) throw new TypeError(`tool ${tool} was called with bad input: ${endless.key} is a number beyond the range of a double`)
  const bytes = byteLength(text)
  if (bytes <= limits.arguments_bytes) return parsed.data
  throw new TypeError(`the input of tool ${tool} takes ${bytes} bytes as JSON; at most ${limits.arguments_bytes} are allowed`)
}

/** The idempotency key: the tool's own, else the one that the caller gives. */
export function effectKey(
  { tool, definition, input, key: given = null }: Pick<EffectRequest, 'tool' | 'definition' | 'input' | 'key'>,
  scope: string,
): string | null {
  if (!definition.idempotence_key) return given
  const key: unknown = definition.idempotence_key(input, scope)
  if (typeof key === 'string' && key.length > 0 && key.length <= limits.idempotence_key) return key
  throw new TypeError(`the idempotency key of tool ${tool} must be a string of 1 to ${limits.idempotence_key} characters`)
}

const CALL = 'call:'
export const isCallKey = (key: string): boolean => key.startsWith(CALL)

/** The key of a call that is keyed as such: its earlier attempt's key, else a new one. */
export function callKey(
  { keyed_by_call = false }: ToolDefinition,
  earlier: { key?: string | null } | undefined,
  place: EffectPlace | null,
): string | null {
  if (!keyed_by_call || place === null) return null
  return earlier?.key ?? `${CALL}${place.owner}/${place.phase}/${place.place}`
}

/** An ended effect whose end is not written yet. It keeps the lane until it is closed. */
export type HeldEffect = {
  result: EffectResult
  output: unknown
  /** Set if the tool threw. */
  thrown?: { error: unknown }
  /** The id of the earlier effect that answers it. */
  answered?: string
  /** Writes the effect's end together with its step's end. */
  close: (unit: Unit, step?: StepEnd) => void
}

/** The end of an effect, as the journal and the log record it. */
export type EffectResult = {
  status: EffectEnd
  output: unknown
  error: string | null
  stack?: string | null
  /** Set by the error: a retry is allowed, and the failed call cost so much. */
  told?: { retryable?: true; cost_usd?: number }
}

/** An effect that succeeded, even if its output cannot be recorded. */
export function succeeded(output: unknown): EffectResult {
  try {
    const text = JSON.stringify(output ?? null)
    const bytes = byteLength(text)
    if (bytes <= limits.result_bytes) return { status: 'ok', output: JSON.parse(text), error: null }
    const error = `the output takes ${bytes} bytes as JSON, more than ${limits.result_bytes}, and was not recorded`
    return { status: 'ok', output: null, error }
  } catch (error) {
    return { status: 'ok', output: null, error: `the output could not be recorded: ${messageOf(error)}` }
  }
}

type Called = { tool: string; definition: ToolDefinition; input: unknown; secrets?: readonly string[] | undefined }
/** `names`: the secrets in the input. `hider` masks them at any length, and all known secrets. */
export type Filled = { input: unknown; names: readonly string[]; hider: SecretHider }

/**
 * Fills in the secrets that the input names. Throws if the tool may not have one: it must declare
 * its hosts.
 */
export function fillSecrets({ env, scope }: { env: Env; scope: string }, { tool, definition, input, secrets = [] }: Called): Filled {
  const known = deploymentHider(env)
  const names = secrets.length === 0 ? [] : namedIn(input, secrets)
  if (names.length === 0) return { input, names, hider: known }
  const refusal = definition.secret_refusal
    ? definition.secret_refusal(env, names)
    : `it is not known where the tool sends what it is given`
  if (refusal !== null) throw new Error(`tool ${tool} is given no secret: ${refusal}`)
  const values = new Map(names.map((name) => [name, valueOf(env, name, scope)]))
  const own = secretHider([...values.values()], 1)
  const hider: SecretHider = {
    finds: (text) => own.finds(text) || known.finds(text),
    text: (text) => known.text(own.text(text)),
    value: (value) => known.value(own.value(value)),
  }
  return { input: withSecrets(input, values), names, hider }
}

function valueOf(env: Env, name: string, scope: string): string {
  if (!isForScope(env, name, scope))
    throw new Error(`the secret ${name} is not for the scope ${scope}: see ${name}_SCOPES of the deployment`)
  const value = secretOf(env, name, scope)
  if (value === undefined || value === '') throw new Error(`the secret ${name} is not set: set it with \`npx wrangler secret put ${name}\``)
  return value
}
