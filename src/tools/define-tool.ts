import type { Schema } from 'ai'
import type { z } from 'zod'
import type { Settings } from '../contract/settings/settings.ts'
import type { Env } from '../env.ts'
import { type Json, mapJson } from '../base/json.ts'
import { createHash } from 'node:crypto'
import type { CallKeys } from '../contract/reflex.ts'
import { SEVERAL_WORDS } from '../contract/words.ts'
import type { Anchor } from '../contract/settings/anchors.ts'
import { matchesScope } from '../contract/principal.ts'

const plain = (text: string): string => text.normalize('NFKC').trim().toLowerCase()

/** The names of the anchors that a call with this input touches. */
export function anchorsTouched(anchors: readonly Anchor[] = [], { tool, input }: { tool: string; input: unknown }): string[] {
  const asking = anchors.filter(({ tools }) => !tools || tools.some((pattern) => matchesScope(pattern, tool)))
  if (asking.length === 0) return []
  const values = Array.from(new Set(valuesIn(input)), plain)
  const touches = ({ match }: Anchor) => match.map(plain).some((pattern) => values.some((value) => matchesScope(pattern, value)))
  return asking.filter(touches).map(({ name }) => name)
}

/** A call that a person was asked about instead. */
export class AwaitsPerson extends Error {
  override readonly name = 'AwaitsPerson'
}

export const whyAnchored = (names: readonly string[]): string =>
  `waits for a person: touches ${names.map((name) => `the anchor ${name}`).join(' and ')}`

export const whyDoubted = (sentences: readonly string[]): string => `waits for a person: ${sentences.join('; ')}`

function* valuesIn(value: unknown): Generator<string> {
  if (typeof value === 'string') yield value
  else if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') yield String(value)
  else if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) yield* valuesIn(inner)
}

/** A key that a tool or a plan declares with this prefix holds in all scopes of the deployment. */
const GLOBAL = 'global:'
export const isGlobalKey = (key: string): boolean => key.startsWith(GLOBAL)

/**
 * The reason why a key may not be used, or null: only its template declares that a key is
 * deployment-wide, never a value in it.
 */
export const undeclaredGlobal = (template: string, key: string): string | null =>
  isGlobalKey(key) && !isGlobalKey(template) ? `a value must not turn an idempotency key into a deployment-wide one (${GLOBAL})` : null

/** SHA-256 of a tool's arguments as its schema has parsed them. */
export const argumentsHash = (input: unknown): string =>
  createHash('sha256')
    .update(JSON.stringify(input) ?? 'undefined')
    .digest('hex')

const NUMBERS = /\d+/g

/**
 * Identifies a call by the tool's key and its arguments; null if the arguments are invalid. A key
 * seldom names all that the effect depends on, such as an amount. Of texts of several words, which
 * a model words freely, the numbers count.
 */
export function callKeys(tool: ToolDefinition, args: unknown, scope: string): CallKeys | null {
  const parsed = tool.input.safeParse(args)
  if (!parsed.success) return null
  const { data } = parsed
  const arguments_hash = argumentsHash(data)
  const idempotence_key = tool.idempotence_key?.(data, scope) ?? null
  if (idempotence_key === null) return { idempotence_key, arguments_hash }
  const values = mapJson(data, (value) =>
    typeof value === 'string' && SEVERAL_WORDS.test(value) ? (value.match(NUMBERS) ?? undefined) : value,
  )
  return { idempotence_key, arguments_hash, values_hash: argumentsHash(values) }
}

/** Names a call of a tool without keys by the fields that its undoing matches. */
export function namedBy(match: readonly string[], input: unknown): string {
  const fields = input as Readonly<Record<string, unknown>>
  return `fields:${argumentsHash(match.map((name) => fields[name] ?? null))}`
}

export type ToolCall = {
  env: Env
  fetch: typeof fetch
  scope: string
  parameters: Settings['parameters']
  signal: AbortSignal
  /** Hand it on to what the tool calls, so that a repeated call is recognised there. */
  idempotence_key: string | null
  /** Names of the deployment's secrets whose values are in the input. */
  secrets?: readonly string[]
  now: () => number
  /** The span of the call, for calls of other scopes. */
  trace?: { trace_id: string; span_id: string }
}

export type ToolDefinition<Input = unknown> = {
  description: string
  input: z.ZodType<Input>
  /** The schema for models if `input` is incomplete, as for tools of MCP servers. */
  shown_input?: Schema
  /**
   * Names an effect that must happen once within `idempotence_days`. A completed call is answered
   * from the journal, and a lost one runs again under the same key.
   * A key with the prefix `global:` holds in all scopes of the deployment.
   */
  idempotence_key?: (input: Input, scope: string) => string
  /**
   * Without a key of its own, each call gets one, which a repeated attempt of the call has as well:
   * for tools whose equal calls are different effects, such as two payments.
   */
  keyed_by_call?: boolean
  timeout_ms?: number
  /**
   * Undoes `tool` for equal values of the fields `match`, of which that tool's key must consist.
   * Undoing a reflex's call overrules the reflex.
   */
  undoes?: { tool: string; match: readonly string[] }
  /** Only reads: its output is not kept, and a call that a crash cut off is repeated. */
  repeatable?: boolean
  /** Only reads, by its method or what its server says. */
  reads?: boolean
  /** It destroys or overwrites, as its server says. */
  destroys?: boolean
  /**
   * Paths of the arguments that decide where it goes or on whom it acts. Unset: assumed from
   * formats and names, see docs/security.md. An empty list: none.
   */
  destinations?: readonly string[]
  /** The fields of its request, with slots of its input. Their names say where an argument goes. */
  sends?: Json
  /** Strangers write its output, or the fields at these paths: no value there may direct a call. */
  untrusted?: boolean | readonly string[]
  /** Only steps of skills may call it, so that the gate decides on each call. */
  plans_only?: boolean
  /** The reason these secrets may not be in its input, or null. Without it, no secret may. */
  secret_refusal?: (env: Env, names: readonly string[]) => string | null
  /** Throws if the effect did not happen, and CutOff if it may have. */
  execute: (input: Input, call: ToolCall) => Promise<unknown>
}

export const onlyReads = ({ repeatable = false, reads = false }: Pick<ToolDefinition, 'repeatable' | 'reads'>): boolean =>
  repeatable || reads

/** A tool, with what `deps.call` takes and gives for it. The field is never set. */
type TypedTool<Given, Output> = ToolDefinition & { readonly types?: { given: Given; output: AsJson<Output> } }

/**
 * The part of a type that is the same in JSON. A call that is answered from the journal gives what
 * was kept, where a `Date` is a text.
 */
type AsJson<Value> = unknown extends Value
  ? unknown
  : Value extends string | number | boolean | null | undefined
    ? Value
    : Value extends { toJSON: unknown } | ((...given: never[]) => unknown)
      ? unknown
      : Value extends object
        ? { [Name in keyof Value]: AsJson<Value[Name]> }
        : unknown

/** A tool as the effect lane runs it, for models, triggers and reflexes. */
export function defineTool<Schema extends z.ZodType, Output = unknown>(
  definition: Omit<ToolDefinition<z.output<Schema>>, 'input' | 'execute'> & {
    input: Schema
    execute: (input: z.output<Schema>, call: ToolCall) => Promise<Output>
  },
): TypedTool<z.input<Schema>, Output> {
  // The lane calls it only with what `input` has parsed, so that its own type of input can be
  // forgotten here.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- for the reason above
  return definition as unknown as ToolDefinition
}

const LONGEST = 64

/**
 * The name for models: letters, digits, `_` and `-`, at most 64, so that `http.tickets.open`
 * becomes `http_tickets_open`. It depends on nothing else, so that it always means the same tool;
 * the toolbox refuses a second tool of one name.
 */
export function shownName(name: string): string {
  const plain = name.replaceAll(/[^\w-]/g, '_')
  return plain.length <= LONGEST ? plain : `${plain.slice(0, LONGEST - 9)}_${argumentsHash(name).slice(0, 8)}`
}
