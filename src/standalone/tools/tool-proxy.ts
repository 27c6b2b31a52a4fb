import { asSchema, type ToolExecutionOptions, type ToolSet } from 'ai'
import type { Json } from '../../base/json.ts'
import type { ToolCaller, ToolPolicy, CallerOutput } from './tool-caller.ts'
import { markWrapped, refuseWrapped } from '../../skills/model/wrapped.ts'

export type ReflexToolOptions = ToolExecutionOptions<unknown> & { idempotence_key?: string | null }

type Tool = ToolSet[string]

export type ToolPolicies = Readonly<Record<string, ToolPolicy>>

/** Returns the caller for the id of a call, which is logged in its turn. */
type CallerFor = (call_id: string) => ToolCaller

/** The same tools with timeouts, retries and logs. Tools without `execute` stay as they are. */
export function proxyTools<Tools extends ToolSet>(
  tools: Tools,
  { callerFor, policies = {} }: { callerFor: CallerFor; policies?: ToolPolicies },
): Tools {
  return Object.fromEntries(
    Object.entries(tools).map(([name, tool]) => [name, proxyTool(name, tool, { callerFor, policy: policies[name] ?? {} })]),
  ) as Tools
}

function proxyTool(name: string, tool: Tool, { callerFor, policy }: { callerFor: CallerFor; policy: ToolPolicy }): Tool {
  refuseWrapped(tool, `the tool ${name}`)
  if (!tool.execute) return tool
  const execute = async (input: unknown, options: ToolExecutionOptions<unknown>): Promise<unknown> => {
    const { toolCallId: call_id, abortSignal: signal } = options
    const work = (abortSignal: AbortSignal, idempotence_key: string | null) =>
      run(tool, input, { ...options, abortSignal, idempotence_key })
    const used = await callerFor(call_id).use({ tool: name, call_id, input, policy, signal, key: null, work })
    return used.output
  }
  return markWrapped({ ...tool, execute })
}

/** Why a plan cannot call a tool; null if it can. */
export function whyNotForPlans(name: string, tool: Tool | undefined): string | null {
  if (!tool?.execute) return `a plan cannot call ${name}: the tool does not exist`
  // A plan cannot ask a person: its manifest does, by `needs_approval_if`.
  return tool.needsApproval ? `the tool ${name} needs an approval of its own, which a plan cannot give` : null
}

type PlanCall = { signal: AbortSignal; call_id: string; idempotence_key: string | null; hide?: (value: Json) => Json }

/** Calls a tool for a plan, which has its own timeouts, retries and keys. */
export async function callForPlan(
  caller: ToolCaller,
  { name, tool, policy, input }: { name: string; tool: Tool | undefined; policy: ToolPolicy; input: unknown },
  { signal, call_id, idempotence_key, hide }: PlanCall,
): Promise<CallerOutput> {
  const refusal = whyNotForPlans(name, tool)
  if (!tool || refusal !== null) throw new Error(refusal ?? `the tool ${name} does not exist`)
  const checked = await asSchema(tool.inputSchema).validate?.(input)
  if (checked && !checked.success) throw new Error(`the arguments do not fit ${name}: ${checked.error.message}`)
  const value: unknown = checked ? checked.value : input
  const work = (abortSignal: AbortSignal, key: string | null) =>
    run(tool, value, { toolCallId: call_id, messages: [], abortSignal, context: {}, idempotence_key: key })
  const { redact, cost_usd } = policy
  const own: ToolPolicy = { ...(redact ? { redact } : {}), ...(cost_usd === undefined ? {} : { cost_usd }), timeout_ms: FOREVER_MS }
  return caller.use({
    tool: name,
    call_id,
    input: value,
    asked: input,
    policy: own,
    signal,
    key: idempotence_key,
    work,
    ...(hide ? { hide } : {}),
  })
}

/** The longest that a timer takes; the plan's own timeout comes long before. */
const FOREVER_MS = 2_147_483_647

/** A tool may give its output piece by piece; the last piece is the output. */
async function run(tool: Tool, input: unknown, options: ReflexToolOptions): Promise<unknown> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the SDK types the context by the tool, which is not known here
  const output: unknown = await tool.execute?.(input as never, options as never)
  if (!isIterable(output)) return output
  let last: unknown = null
  for await (const piece of output) last = piece
  return last
}

const isIterable = (value: unknown): value is AsyncIterable<unknown> =>
  typeof value === 'object' && value !== null && Symbol.asyncIterator in value
