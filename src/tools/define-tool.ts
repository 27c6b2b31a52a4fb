import type { Schema } from 'ai'
import type { z } from 'zod'
import type { Settings } from '../contract/settings/settings.ts'
import type { Env } from '../env.ts'

export type ToolCall = {
  env: Env
  fetch: typeof fetch
  scope: string
  /** The scope's `parameters` setting. */
  parameters: Settings['parameters']
  /** Aborts on cancel, preemption and timeout. */
  signal: AbortSignal
  /** Hand it on to what the tool calls, so that a repeated call is recognised there. */
  idempotence_key: string | null
  /** The names of the deployment's secrets whose values stand in the input. */
  secrets?: readonly string[]
  now: () => number
}

export type ToolDefinition<Input = unknown> = {
  description: string
  input: z.ZodType<Input>
  /**
   * The schema that a model sees, if `input` is not complete: that of a server which validates the
   * input itself.
   */
  shown_input?: Schema
  /**
   * Names an effect that must happen once, for as long as the scope's `idempotence_days`. With a
   * key, a call that ended is answered from the journal and a lost one runs again under the same
   * key.
   */
  idempotence_key?: (input: Input, scope: string) => string
  timeout_ms?: number
  /**
   * It takes back what `tool` did with the same values of the fields `match`, which may then be
   * done again: so that tool's idempotency key is made of these fields alone. Where a reflex had
   * done it, the reflex was overruled.
   */
  undoes?: { tool: string; match: readonly string[] }
  /**
   * It only looks: nothing is kept of it but the log, and a call that a crash cuts off is simply
   * made again.
   */
  repeatable?: boolean
  /**
   * Only the steps of skills may call it, so that the gate stands before each call: no model, no
   * trigger and no reflex.
   */
  plans_only?: boolean
  /**
   * Why these secrets of the deployment may not stand in its input; null where they may. A tool
   * without this is given none.
   */
  secret_refusal?: (env: Env, names: readonly string[]) => string | null
  /** Throws where the effect did not happen, and CutOff where it may have. */
  execute: (input: Input, call: ToolCall) => Promise<unknown>
}

/**
 * A tool as the effect lane runs it: the same for the model's calls, a trigger's own and a
 * reflex's.
 */
export function defineTool<Input>(definition: ToolDefinition<Input>): ToolDefinition {
  // The lane calls it only with what `input` has parsed, so that its own type of input can be
  // forgotten here.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- for the reason above
  return definition as unknown as ToolDefinition
}

const LONGEST = 64

/**
 * The names by which a model knows tools: providers take letters, digits, `_` and `-`, at most 64,
 * so that `http.tickets.open` is shown as `http_tickets_open`. Where two would be the same, the
 * later one is numbered.
 */
export function shownNames(names: readonly string[]): string[] {
  const taken = new Set<string>()
  return names.map((name) => {
    const plain = name.replaceAll(/[^\w-]/g, '_')
    let shown = plain.slice(0, LONGEST)
    for (let number = 2; taken.has(shown); number++) shown = `${plain.slice(0, LONGEST - 4)}_${number}`
    taken.add(shown)
    return shown
  })
}
