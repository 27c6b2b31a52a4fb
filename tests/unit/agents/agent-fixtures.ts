import { tool, type ToolSet } from 'ai'
import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { Agent, AgentDeps } from '../../../src/agent/define-agent.ts'
import type { ToolCall, ToolDefinition } from '../../../src/tools/define-tool.ts'
import type { Env } from '../../../src/env.ts'
import { DecisionContext } from '../../../src/core/decision-context.ts'
import { withDefaults, type Event } from '../../../src/core/event.ts'
import { OfflineModel } from '../../../src/models/offline-model.ts'
import { effectiveLearning } from '../../../src/features/learning/contract/setting.ts'
import { effectiveRetry } from '../../../src/contract/settings/retry.ts'
import { defaultSettings, type Settings } from '../../../src/contract/settings/settings.ts'
import type { LogLine } from '../../../examples/agents/ssh-guard/line.ts'

export const NOW = Date.UTC(2026, 2, 9, 12)

/** Members that a test omits from a wide interface throw when they are used. */
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- for the reason above
export const part = <Whole>(some: Partial<Whole> | object): Whole => some as Whole

export const event = (fields: Record<string, unknown> & { type: string }): Event =>
  part<Event>(withDefaults(fields, { now: NOW, source: 'test', scope: 'test/1' }))

let lines = 0
/** A line of sshd's, `at_s` seconds after six o'clock; `pid` names its connection. */
export function logLine(message: string, { at_s = 0, pid = 1, host = 'web-1', id = `line-${(lines += 1)}` } = {}): LogLine {
  const at = Date.UTC(2026, 2, 9, 6) + at_s * 1000
  const time = `Mar  9 ${new Date(at).toISOString().slice(11, 19)}`
  const line = `${time} ${host} sshd[${pid}]: ${message}`
  return part<LogLine>(event({ type: 'log.line', id, host, line, timestamp: new Date(at).toISOString() }))
}

export const failure = (address: string, at_s: number, user = 'root', pid = at_s + 1000): LogLine =>
  logLine(`Failed password for ${user} from ${address} port 4242 ssh2`, { at_s, pid })

export const burst = (address: string, count: number, from_s = 0): LogLine[] =>
  Array.from({ length: count }, (_, index) => failure(address, from_s + index * 10))

type Row = { scope: unknown; address: unknown; reason: unknown; blocked_at: unknown }

/** D1's table `blocks`, as far as the tools' statements need it. */
export function fakeDatabase() {
  const rows = new Map<unknown, Row>()
  const statements: Record<string, (...values: unknown[]) => Row | null> = {
    INSERT(scope, address, reason, blocked_at) {
      const row = rows.get(address) ?? { scope, address, reason, blocked_at }
      rows.set(address, row)
      return row
    },
    SELECT: (_, address) => rows.get(address) ?? null,
    DELETE: (_, address) => (rows.delete(address), null),
  }
  const prepare = (sql: string) => {
    const work = statements[sql.slice(0, 6)]
    if (!work) throw new Error(`no statement begins like ${sql}`)
    return part({ bind: (...values: unknown[]) => ({ run: async () => work(...values), first: async () => work(...values) }) })
  }
  return { db: part<D1Database>({ prepare }), rows }
}

type Options = {
  model?: LanguageModelV4
  settings?: Partial<Settings>
  env?: Partial<Env>
  fetch?: typeof fetch
  signal?: AbortSignal
}

/**
 * Runs an agent's turns like a scope: filters, then the trigger; a result clears the events and
 * keeps the scratch, a failure keeps both.
 */
export function scopeOf(agent: Agent, options: Options = {}) {
  const { signal = new AbortController().signal, model = new OfflineModel(agent.offline) } = options
  const database = fakeDatabase()
  const log = {
    replies: [] as string[],
    deltas: [] as string[],
    needs: [] as (readonly string[])[],
    calls: [] as { tool: string; input: unknown }[],
  }
  const retry = effectiveRetry([agent.settings ?? {}, options.settings ?? {}])
  const learning = effectiveLearning([agent.settings ?? {}, options.settings ?? {}])
  const settings: Settings = { ...defaultSettings, ...agent.settings, ...options.settings, retry, learning }
  const env = part<Env>({ DB: database.db, ...options.env })
  const context = new DecisionContext<Event>({ scope: 'test/1', now: () => NOW })
  const journal = new Set<string>()

  const call = async (name: string, input: unknown): Promise<unknown> => {
    log.calls.push({ tool: name, input })
    const definition = agent.tools[name]
    if (!definition) throw new Error(`no tool ${name}`)
    const answer = await definition.execute(
      definition.input.parse(input),
      toolCall(definition, input, { env, signal, fetch: options.fetch ?? refuse, parameters: settings.parameters }),
    )
    const { undoes } = definition
    journal.add(keyOf(name, input))
    if (undoes) journal.delete(keyOf(undoes.tool, input))
    return answer
  }
  const keyOf = (name: string, input: unknown): string => `${name} ${agent.tools[name]?.idempotence_key?.(input, 'test/1')}`
  const allowed = Object.entries(agent.tools).filter(([name]) => settings.tools?.includes(name) ?? true)
  const tools: ToolSet = Object.fromEntries(
    allowed.map(([name, { description, input }]) => {
      const execute = (value: unknown) => call(name, value)
      return [name, tool({ description, inputSchema: input, execute })]
    }),
  )

  async function turn(...events: Event[]): Promise<unknown> {
    for (const one of events) {
      if (agent.filters.length === 0 || agent.filters.some((filter) => filter(one, context))) context.add(one)
    }
    const seen = new DecisionContext<Event>({
      scope: 'test/1',
      events: [...context.events],
      scratch: structuredClone(context.scratch),
      now: () => NOW,
    })
    const deps = part<AgentDeps>({
      context: seen,
      env,
      settings,
      signal,
      model,
      tools,
      call,
      needs: (names: readonly string[]) => log.needs.push(names),
      done: (name: string, input: unknown) => journal.has(keyOf(name, input)),
      scope: 'test/1',
      db: env.DB,
      turn_id: 'turn-1',
      attempt: 1,
      now: () => NOW,
      reply: (content: string) => log.replies.push(content),
      stream: (delta: string) => log.deltas.push(delta),
    })
    const result = await agent.trigger?.(seen, deps)
    context.scratch = seen.scratch
    if (result !== null) context.events = []
    return result
  }
  return { ...log, context, rows: database.rows, call, turn }
}

type Call = Pick<ToolCall, 'env' | 'signal' | 'fetch' | 'parameters'>
const refuse = async (): Promise<Response> => {
  throw new Error('this test calls nobody')
}

function toolCall(definition: ToolDefinition, input: unknown, given: Call): ToolCall {
  return { ...given, scope: 'test/1', idempotence_key: definition.idempotence_key?.(input, 'test/1') ?? null, now: () => NOW }
}
