/** The package's main entry: a Worker's deployment, its agents, and what they are written with. */
export { defineAgent } from './agent/define-agent.ts'
export type { Agent, AgentDefinition, AgentDeps, AgentEvent, RouteEnv, AgentTrigger } from './agent/define-agent.ts'
export type { EventRecord } from './contract/event-record.ts'
export type { LogEntry } from './contract/log-entry.ts'
export type { Settings, SettingsPatch } from './contract/settings/settings.ts'
export * from './core/index.ts'
// A star, so that a project can add its variables to the interface Env.
export type * from './env.ts'
export type { OfflineAnswer, OfflineRequest, OfflineRule } from './models/offline-model.ts'
export { defineTool, type ToolCall, type ToolDefinition } from './tools/define-tool.ts'
export { CutOff } from './tools/may-have-happened.ts'
export { reflex, type Deployment } from './worker.ts'
