import { z } from 'zod'
import { limits } from './limits.ts'
import { httpTools, mcpServers } from './outside-tools.ts'
import { reflexReference } from './reflex.ts'
import { fitsBytes } from './byte-length.ts'

/** What happens to events that arrive while a turn is in flight; `debounce` also delays the start of a turn. Times in ms. */
export const overlap = z.union([
  z.enum(['queue', 'interrupt', 'drop']),
  z.strictObject({
    debounce: z.strictObject({ quiet_ms: z.int().min(1).max(3_600_000), max_ms: z.int().min(1).max(86_400_000) }),
  }),
])

const tokenBudget = z.strictObject({ tokens: z.int().min(0), per: z.enum(['hour', 'day', 'total']) })

const anyFields = z.record(z.string().min(1).max(128), z.json())
const roles = z.array(z.string().min(1).max(64), 'is a list of roles, such as ["operator"]').max(32)

const blackboard = z
  .strictObject({
    ctx: anyFields,
    env: anyFields,
    work: anyFields.refine((work) => !Object.hasOwn(work, 'steps'), {
      path: ['steps'],
      message: 'is where a plan finds what its steps gave',
    }),
    /** `policy.roles` are those of the scope's own agent; `agent` unless set. */
    policy: anyFields.superRefine((policy, context) => {
      const judged = Object.hasOwn(policy, 'roles') ? roles.safeParse(policy['roles']) : null
      for (const { path, message } of judged?.error?.issues ?? []) context.addIssue({ code: 'custom', path: ['roles', ...path], message })
    }),
  })
  .partial()

const fields = {
  /** The agent that serves this scope, by name; else the first whose pattern matches. */
  agent: z.string().min(1).max(64),
  /** `pull`: no turns here; an outside process claims, acknowledges and refuses events. */
  consumer: z.enum(['turn', 'pull']),
  overlap,
  max_attempts: z.int().min(1).max(100),
  turn_timeout_ms: z.int().min(10).max(600_000),
  effect_timeout_ms: z.int().min(10).max(600_000),
  /** Events of the DecisionContext that are kept beside those not yet considered. */
  context_limit: z.int().min(1).max(10_000),
  /** Events not yet settled, above which new ones are refused with 429. */
  inbox_limit: z.int().min(1).max(1_000_000),
  retention_days: z.number().positive().max(365),
  token_budget: tokenBudget.nullable(),
  /** Names of fields whose values never reach the log, beside the usual ones (password, token, …). */
  redact: z.array(z.string().min(1).max(64)).max(100),
  /** The built-in agent's system prompt. */
  instructions: z.string().max(20_000),
  /** The built-in agent's condition: a CEL expression over the context's counts. */
  when: z.string().max(2000),
  /** Names of the tools that this scope may use, of its agent and of those declared below; all of them unless set. */
  tools: z.array(z.string().min(1).max(128)).max(100),
  /** System 1: the reflexes that see an event before any model does, in order of priority. */
  reflexes: z.array(reflexReference).max(limits.chain_length),
  /** Where the scope's agent works, for the gate: a skill names what it is for. */
  project: z.string().min(1).max(200),
  env: z.union([z.string().min(1).max(64), z.array(z.string().min(1).max(64)).max(16)]),
  toolset: z.string().min(1).max(64),
  repo: z.string().min(1).max(300),
  /** What is being worked for: cues by which skills are chosen. */
  goal_labels: z.array(z.string().trim().min(1).max(64)).max(50),
  /** What a turn's blackboard begins with. */
  blackboard,
  /** How the turn's model proposes a skill and asks for what one needs: `asp` by blocks in its text, `tools` by the native tools `propose_skill` and `clarify`. */
  skill_protocol: z.enum(['asp', 'tools']),
  /** Hosts that HTTP and MCP tools may reach: `api.example.com`, or `*.example.com` for those below it. */
  allowed_hosts: z
    .array(
      z
        .string()
        .regex(
          /^(?:\*\.)?[a-z0-9.-]{1,253}(?::\d{1,5})?$/,
          'a host is a name in lower case, with `*.` before it or a port behind it at most',
        ),
    )
    .max(100),
  /** Tools that are one HTTP request each, to one of `allowed_hosts`. */
  http_tools: httpTools,
  /** MCP servers on `allowed_hosts` whose tools the scope may use. */
  mcp_servers: mcpServers,
  /** The agent's own parameters. */
  parameters: z.record(z.string().min(1).max(64), z.json()),
}

/** What a scope runs with, its agent's defaults filled in. */
export const settings = z.strictObject(fields).partial({
  agent: true,
  instructions: true,
  when: true,
  tools: true,
  project: true,
  env: true,
  toolset: true,
  repo: true,
})
export type Settings = z.infer<typeof settings>

/** A merge patch: what is named changes, null goes back to the default. */
export const settingsPatch = z
  .strictObject(Object.fromEntries(Object.entries(fields).map(([name, schema]) => [name, schema.nullable().optional()])) as PatchShape)
  .refine((patch) => fitsBytes(JSON.stringify(patch), limits.settings_bytes), 'settings are at most 64 kB in all')
type PatchShape = { [Name in keyof typeof fields]: z.ZodOptional<z.ZodNullable<(typeof fields)[Name]>> }
export type SettingsPatch = z.infer<typeof settingsPatch>

export const defaultSettings: Settings = {
  consumer: 'turn',
  overlap: 'queue',
  max_attempts: 3,
  turn_timeout_ms: 60_000,
  effect_timeout_ms: 30_000,
  context_limit: 1000,
  inbox_limit: 250_000,
  retention_days: 7,
  token_budget: null,
  redact: [],
  reflexes: [],
  goal_labels: [],
  blackboard: {},
  skill_protocol: 'asp',
  allowed_hosts: [],
  http_tools: [],
  mcp_servers: [],
  parameters: {},
}

export function mergeSettings(current: SettingsPatch, patch: SettingsPatch): SettingsPatch {
  const merged = { ...current, ...patch }
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== null && value !== undefined))
}
