import type { OpenAPIHono } from '@hono/zod-openapi'
import type { ToolSet } from 'ai'
import type { z } from 'zod'
import type { Env } from '../env.ts'
import type { DecisionContext } from '../core/decision-context.ts'
import type { Filter, ReflexDeps } from '../core/deps.ts'
import type { builtInEvents, Event, EventSchema } from '../core/event.ts'
import type { OfflineRule } from '../models/offline-model.ts'
import type { RetentionStep } from '../contract/retention-step.ts'
import type { RetrySettings } from '../contract/retry-settings.ts'
import type { Principal } from '../contract/principal.ts'
import type { Settings } from '../contract/settings.ts'
import type { ToolDefinition } from '../tools/define-tool.ts'
import type { AgentRegistry } from './registry.ts'

/** What a trigger is given: document 1's dependencies, and the scope's means to act. */
export type AgentDeps<E extends Event = Event> = ReflexDeps<E, D1Database> & {
  env: Env
  settings: Settings
  turn_id: string
  /** 1 for a first try. */
  attempt: number
  now: () => number
  /** The agent's tools, as the AI SDK takes them; each call is an effect: gated by the settings, serialised, journalled. */
  tools: ToolSet
  /** Calls a tool directly. Throws where it fails, and where this scope may not use it. */
  call: (tool: string, input: unknown) => Promise<unknown>
  /**
   * Whether a call would change nothing, since the same one, by the tool's idempotency key, was carried out or waits for the effect lane: a reflex may have
   * been faster. Once it was taken back, or has failed, it is not.
   */
  done: (tool: string, input: unknown) => boolean
  /** Sends a whole answer to whoever watches, and into the log. */
  reply: (content: string) => void
  /** Sends a piece of an answer to the sockets only, as it is being made. */
  stream: (delta: string) => void
}

/** What a route of the API can rely on: the caller's key was checked, and the registry is the deployment's. */
export type RouteEnv = { Bindings: Env; Variables: { principal: Principal; scope: string; agents: AgentRegistry } }

/** A result, as JSON, or null where there was nothing to do; a forgotten `return` does not type. */
export type Trigger<E extends Event> = (
  context: DecisionContext<E>,
  deps: AgentDeps<E>,
) => Promise<object | string | number | boolean | null>

export type AgentDefinition<Schemas extends readonly EventSchema[] = readonly EventSchema[]> = {
  name: string
  /** Patterns of the scopes that it serves, such as `ssh/*`. */
  scopes: readonly string[]
  /** Event types beside the built-in ones. */
  events?: Schemas
  filters?: readonly Filter<AgentEvent<Schemas>>[]
  /** System 2. Without one the agent only perceives. */
  trigger?: Trigger<AgentEvent<Schemas>>
  tools?: Record<string, ToolDefinition>
  /** Whether it may write reflexes and change its own chain. A scope's setting `tools` decides that for itself. */
  writes_reflexes?: boolean
  /** Functions that skills' expressions may call by name, such as `deploy_window('staging')`: synchronous, JSON in and out. What they answer stands in the log. */
  probes?: Readonly<Record<string, (...args: never[]) => unknown>>
  settings?: Partial<Omit<Settings, 'agent' | 'retry'>> & { retry?: Partial<RetrySettings> }
  /** How the offline model answers this agent's prompts. */
  offline?: readonly OfflineRule[]
  /** Routes of its own, behind the API's authentication. */
  routes?: OpenAPIHono<RouteEnv>
  /** Deletes old rows from its own tables in D1. */
  retention?: readonly RetentionStep[]
}

type BuiltIn = z.infer<(typeof builtInEvents)[number]>
export type AgentEvent<Schemas extends readonly EventSchema[]> = BuiltIn | z.infer<Schemas[number]>

/** An agent as the scopes run it, its own event types forgotten: they were checked where it was defined. */
export type Agent = Omit<AgentDefinition, 'filters' | 'trigger' | 'tools'> & {
  filters: readonly Filter[]
  trigger: Trigger<Event> | null
  tools: Readonly<Record<string, ToolDefinition>>
}

export function defineAgent<const Schemas extends readonly EventSchema[] = []>(definition: AgentDefinition<Schemas>): Agent {
  const { filters = [], trigger = null, tools = {} } = definition
  // Its scopes only get events of known types, each parsed by its schema, so that the narrower functions are safe to call.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- for the reason above
  return { ...definition, filters, trigger, tools } as unknown as Agent
}
