import { checkJson, isFields } from '../../base/check-json.ts'
import type { JsonFields } from '../../base/json.ts'

/** The place in the config of calls where LangGraph keeps the state that a node was given. */
const SCRATCHPAD = '__pregel_scratchpad'
/** The blackboard has more to hold, and a state may be of any size. */
const MOST_BYTES = 64_000

type Config = { configurable?: Readonly<Record<string, unknown>> }

/** The state of the node that makes the call; undefined outside of a graph. */
export function nodeState({ configurable }: Config): { ctx: JsonFields } | undefined {
  const scratchpad = configurable?.[SCRATCHPAD]
  return isFields(scratchpad) ? graphState(scratchpad['currentTaskInput']) : undefined
}

/**
 * The state of a graph as the agent's state of a turn, under a name of its own, so that no graph
 * replaces a setting. Messages are in the prompt; what is not JSON, or too large, is left out.
 */
export function graphState(state: unknown): { ctx: JsonFields } | undefined {
  if (!isFields(state)) return undefined
  let left = MOST_BYTES
  const kept = Object.entries(state).filter(([name, value]) => {
    const json = name !== 'messages' && isPlain(value) ? checkJson(value) : null
    if (json?.ok !== true || json.max_bytes > left) return false
    left -= json.max_bytes
    return true
  })
  return kept.length === 0 ? undefined : { ctx: { graph: Object.fromEntries(kept) as JsonFields } }
}

/** Without objects of classes, such as clients, whose fields are nobody's state. */
function isPlain(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true
  const prototype: unknown = Object.getPrototypeOf(value)
  return (Array.isArray(value) || prototype === Object.prototype || prototype === null) && Object.values(value).every(isPlain)
}
