import type { ToolDefinition } from '../../tools/define-tool.ts'
import type { Cause, EntryHead } from '../../contract/log-entry.ts'
import type { Json } from '../../base/json.ts'
import type { Filled } from './secret-arguments.ts'

export type EffectRequest = {
  tool: string
  definition: ToolDefinition
  input: unknown
  cause: Cause
  turn_id: string | null
  /** Given by whoever asks, for a tool that has no key of its own. */
  key?: string | null
  /** Turns that considered the same events before: what they did is not done again. */
  earlier_turns: readonly string[]
  head: EntryHead
  signal: AbortSignal
  timeout_ms: number
  /** Secrets of the deployment that the input may name; their values are put in for the call alone. */
  secrets?: readonly string[]
  /** Takes out of the log what must not be in it, beside what is secret by its name. */
  hide?: (value: Json) => Json
}

/** `input` is as it is kept and logged: where it names secrets, `filled` is what the tool is called with. */
export type ReadyRequest = EffectRequest & { filled: Filled }
