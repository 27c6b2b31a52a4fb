import type { OpenAPIHono } from '@hono/zod-openapi'
import type { ToolSet } from 'ai'
import type { z } from 'zod'
import type { Env } from '../env.ts'
import type { DecisionContext, Filter, ReflexDeps } from '../core/decision-context.ts'
import type { builtInEvents, Event, EventSchema, eventUnion } from '../core/event.ts'
import type { OfflineRule } from '../models/offline-model.ts'
import type { DeploymentFeature } from '../events/deployment.ts'
import type { RetentionStep } from '../events/retention.ts'
import type { LearningSettings } from '../features/learning/contract/setting.ts'
import type { RetrySettings } from '../contract/settings/retry.ts'
import type { Change } from '../contract/change.ts'
import type { Principal } from '../contract/principal.ts'
import type { Settings } from '../contract/settings/settings.ts'
import type { ToolDefinition } from '../tools/define-tool.ts'

type Tools = Readonly<Record<string, ToolDefinition>>
/** Tools that the agent does not declare: of settings and of the market, and those for reflexes. */
type OtherTool = `${string}.${string}` | `${string}_reflex` | 'list_reflexes' | 'update_agent_config'
type GivenTo<Tool> = Tool extends { readonly types?: { given: infer Given } } ? Given : unknown
type OutputOf<Tool> = Tool extends { readonly types?: { output: infer Output } } ? Output : unknown
type NameIn<Own extends Tools> = string extends keyof Own ? string : keyof Own | OtherTool
/** Methods, so that a trigger that is written for any tools fits an agent with tools of its own. */
type Calls<Own extends Tools> = {
  /** Calls a tool directly. Throws if it fails or if this scope may not use it. */
  call<Name extends NameIn<Own>>(this: void, tool: Name, input: GivenTo<Own[Name]>): Promise<OutputOf<Own[Name]>>
  /** True if the same call was carried out or is waiting: a reflex may have been faster. */
  done<Name extends NameIn<Own>>(this: void, tool: Name, input: GivenTo<Own[Name]>): boolean
}

/** The dependencies of a trigger: core's, and the scope's means to act. */
export type AgentDeps<E extends Event = Event, Own extends Tools = Tools> = ReflexDeps<E, D1Database> &
  Calls<Own> & {
    env: Env
    settings: Settings
    turn_id: string
    /** 1 on the first attempt. */
    attempt: number
    now: () => number
    /** The agent's tools for the AI SDK. Each call is a journalled effect. */
    tools: ToolSet
    /**
     * Names the tools that the turn needs, as its model knows them, before anything is read. A
     * person is asked about later calls of others. Throws after a call.
     */
    needs: (tools: readonly string[]) => void
    /** Sends a complete answer to all listeners and writes it to the log. */
    reply: (content: string) => void
    /** Sends a piece of an answer to the sockets only, while it is produced. */
    stream: (delta: string) => void
  }

/** Variables of every API route: the caller, whose key was checked, and the deployment's agents. */
export type RouteEnv = { Bindings: Env; Variables: RouteVariables }
type RouteVariables = {
  principal: Principal
  scope: string
  agents: AgentRegistry
  /** Each feature, by what it does for the deployment. */
  features: readonly DeploymentFeature[]
  /** Tells the features of a change that the request has made. */
  changed: (change: Change) => Promise<void>
}

/** Returns a JSON result, or null if there was nothing to do. */
export type AgentTrigger<E extends Event, Own extends Tools = Tools> = (
  context: DecisionContext<E>,
  deps: AgentDeps<E, Own>,
) => Promise<object | string | number | boolean | null>

export type AgentDefinition<Schemas extends readonly EventSchema[] = readonly EventSchema[], Own extends Tools = Tools> = {
  name: string
  /** Your own version of the agent's code, for the log and replays. */
  version?: string
  scopes: readonly string[]
  events?: Schemas
  filters?: readonly Filter<AgentEvent<Schemas>>[]
  /** System 2. An agent without a trigger only perceives. */
  trigger?: AgentTrigger<AgentEvent<Schemas>, Own>
  tools?: Own
  /** True if the agent may write reflexes. The setting `tools` takes precedence. */
  writes_reflexes?: boolean
  /**
   * Functions for skill expressions, such as `deploy_window('staging')`. Synchronous, JSON in and
   * out.
   */
  probes?: Readonly<Record<string, (...args: never[]) => unknown>>
  settings?: Partial<Omit<Settings, 'agent' | 'retry' | 'learning'>> & {
    retry?: Partial<RetrySettings>
    learning?: Partial<LearningSettings>
  }
  offline?: readonly OfflineRule[]
  /** Why no turn has anything to do with these settings: there is no slow path. */
  unserved?: (settings: Settings) => string | null
  /** Why these settings left a turn without anything to do, for the outcome of its events. */
  idle?: (settings: Settings) => string | null
  routes?: OpenAPIHono<RouteEnv>
  /** Steps of the sweep that delete old rows from the agent's tables in D1. */
  retention?: readonly RetentionStep[]
}

type BuiltIn = z.infer<(typeof builtInEvents)[number]>
export type AgentEvent<Schemas extends readonly EventSchema[]> = BuiltIn | z.infer<Schemas[number]>

/** An agent as scopes run it. Its event types are erased. */
export type Agent = Omit<AgentDefinition, 'filters' | 'trigger' | 'tools'> & {
  filters: readonly Filter[]
  trigger: AgentTrigger<Event> | null
  tools: Tools
}

/** Why no turn takes events with these settings; null if one does. */
export const noSlowPath = ({ name, trigger, unserved }: Pick<Agent, 'name' | 'trigger' | 'unserved'>, settings: Settings): string | null =>
  trigger === null ? `agent ${name} has no trigger` : (unserved?.(settings) ?? null)

export function defineAgent<const Schemas extends readonly EventSchema[] = [], Own extends Tools = Tools>(
  definition: AgentDefinition<Schemas, Own>,
): Agent {
  const { filters = [], trigger = null, tools = {} } = definition
  // Scopes receive only events that their type's schema parsed, so the narrower functions are safe
  // to call.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- for the reason above
  return { ...definition, filters, trigger, tools } as unknown as Agent
}

export type AgentRegistry = {
  agents: readonly Agent[]
  eventTypes: readonly string[]
  eventSchema: ReturnType<typeof eventUnion>
  /** The agent that the scope's settings name, else the first whose pattern matches the scope. */
  agentOf: (scope: string, name?: string) => Agent
}
