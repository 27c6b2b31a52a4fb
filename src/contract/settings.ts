import { z } from 'zod'
import { blackboard, blackboardLayers } from './settings/blackboard.ts'
import { limits } from '../base/limits.ts'
import { httpTools, mcpServers } from './settings/outside-tools.ts'
import { reflexReference } from './reflex.ts'
import { defaultRetry, mergeRetry, namesTwoAttempts, onToolError, retryPatch, retrySettings } from './settings/retry.ts'
import { fitsBytes } from '../base/byte-length.ts'
import { skillSettings } from './skill-settings.ts'
import { whenFunctions, whenWindows } from './settings/when.ts'

const WHEN = Object.keys(whenWindows)

export const overlap = z.union([
  z.enum(['queue', 'interrupt', 'drop']),
  z.strictObject({
    debounce: z.strictObject({
      quiet_ms: z.int().min(1).max(3_600_000).meta({ description: 'A turn starts after this long without a new event.' }),
      max_ms: z.int().min(1).max(86_400_000).meta({ description: 'A turn starts this long after the first event, at the latest.' }),
    }),
  }),
])

const tokenBudget = z.strictObject({
  tokens: z.int().min(0).meta({ description: 'Input and output tokens together.' }),
  per: z.enum(['hour', 'day', 'total']).meta({ description: 'Hours and days are those of UTC.' }),
})

/** Each with its meaning and an example: the API's description and docs/settings.md are made of these. */
const days = (most: number) => z.number().positive().max(most)

const fields = {
  agent: z
    .string()
    .min(1)
    .max(64)
    .meta({
      description: 'The agent that serves this scope, by name. Unset: the first agent whose pattern matches the scope.',
      examples: ['prompted'],
    }),
  consumer: z.enum(['turn', 'pull']).meta({
    description: '`turn`: the agent handles events here. `pull`: an outside process claims, acknowledges and rejects them.',
    examples: ['pull'],
  }),
  overlap: overlap.meta({
    description:
      'What happens to events that arrive while a turn is in flight. `queue`: another turn considers them afterwards. `interrupt`: the turn is aborted, and starts again ' +
      'with everything. `drop`: they join the context and start no turn. `debounce`: turns wait for a quiet moment, and consider all that came until then.',
    examples: [{ debounce: { quiet_ms: 2000, max_ms: 10_000 } }],
  }),
  max_attempts: retrySettings.shape.max_attempts.meta({
    description:
      'How often an event is tried before it goes to the dead letters. Short for `retry.max_attempts`: the one that was set last counts.',
    examples: [5],
  }),
  retry: retrySettings.meta({
    description:
      'How failures are retried, and how long events wait for a model provider that is busy or out of reach. A patch changes the fields that it names.',
    examples: [{ max_attempts: 5, backoff_ms: 500, max_backoff_ms: 60_000, model_outage_s: 3600 }],
  }),
  on_tool_error: onToolError,
  turn_timeout_ms: z
    .int()
    .min(10)
    .max(600_000)
    .meta({
      description: 'How long one turn may take. A turn that takes longer is aborted, and its events are retried.',
      examples: [120_000],
    }),
  effect_timeout_ms: z
    .int()
    .min(10)
    .max(600_000)
    .meta({
      description: 'How long one tool call may take, unless the tool has a `timeout_ms` of its own.',
      examples: [10_000],
    }),
  context_limit: z
    .int()
    .min(1)
    .max(10_000)
    .meta({
      description: 'How many events the DecisionContext keeps, beside those that no turn has considered yet. The oldest leave first.',
      examples: [200],
    }),
  inbox_limit: z
    .int()
    .min(1)
    .max(1_000_000)
    .meta({
      description: 'How many events may be without an outcome. Above it new events are refused with 429.',
      examples: [10_000],
    }),
  retention_days: days(365).meta({
    description:
      'How long events with an outcome, the log and the journal of effects are kept. An event id is recognised as a duplicate for as long.',
    examples: [30],
  }),
  idempotence_days: days(36_500).meta({
    description:
      'How long the scope knows the idempotency keys of effects and plans that ended well: for so many days, and for `retention_days` at least, none is done a second time. ' +
      'After `retention_days` only a hash of the key and an output of at most 256 bytes are left.',
    examples: [3650],
  }),
  token_budget: tokenBudget.nullable().meta({
    description:
      'Tokens that this scope may spend on models. When they are spent, events wait until the period is over or the budget is raised. null: no limit.',
    examples: [{ tokens: 100_000, per: 'day' }],
  }),
  redact: z
    .array(z.string().min(1).max(64))
    .max(100)
    .meta({
      description: 'Names of fields whose values are kept out of the log, beside the usual ones (password, token, …).',
      examples: [['email', 'phone']],
    }),
  instructions: z
    .string()
    .max(20_000)
    .meta({
      description: 'The system prompt of the built-in agent `prompted`, and of `chat`. Without it `prompted` starts no model.',
      examples: ['You triage messages. Answer in one line.'],
    }),
  when: z
    .string()
    .max(2000)
    .meta({
      description:
        'The condition on which the built-in agent `prompted` starts a model: a CEL expression that is true or false. It sees `total` (events in the context), `by_type["TYPE"]` and ' +
        `\`by_source["SOURCE"]\`, over the whole context or as fields of ${WHEN.slice(0, -1).join(', ')} and ${WHEN.at(-1)}, which count the latest events only. ` +
        `Functions: ${whenFunctions.join(', ')}.`,
      examples: ['last_1m.total >= 3 || by_type["timer.tick"] > 0'],
    }),
  tools: z
    .array(z.string().min(1).max(128))
    .max(100)
    .meta({
      description:
        'Names of the tools that this scope may use: of its agent, and of those that `http_tools` and `mcp_servers` declare. Unset: all of them.',
      examples: [['http.tickets.open']],
    }),
  reflexes: z
    .array(reflexReference)
    .max(limits.chain_length)
    .meta({
      description: 'The reflexes that see each event before any model does, in this order. The first that returns an action decides.',
      examples: [[{ id: 'greet', cooldown_s: 10 }]],
    }),
  project: z
    .string()
    .min(1)
    .max(200)
    .meta({
      description: "Where the scope's agent works. Skills whose manifest names another `compat.project` are refused.",
      examples: ['acme/shop'],
    }),
  env: z.union([z.string().min(1).max(64), z.array(z.string().min(1).max(64)).max(16)]).meta({
    description: 'The environment, or several, that `compat.env` of skills is compared with.',
    examples: ['staging'],
  }),
  toolset: z
    .string()
    .min(1)
    .max(64)
    .meta({
      description: 'The set of tools that `compat.toolset` of skills is compared with.',
      examples: ['kubernetes'],
    }),
  repo: z
    .string()
    .min(1)
    .max(300)
    .meta({
      description: 'The repository that `compat.repo` of skills is compared with.',
      examples: ['github.com/acme/shop'],
    }),
  goal_labels: z
    .array(z.string().trim().min(1).max(64))
    .max(50)
    .meta({
      description: 'What is being worked for. A skill that names one of these labels scores higher at the gate.',
      examples: [['defence']],
    }),
  ...skillSettings,
  blackboard: blackboard.meta({
    description: "What the blackboard of each turn begins with: the values that skills' expressions and templates read.",
    examples: [{ ctx: { friends: ['192.0.2.7'] } }],
  }),
  ...blackboardLayers,
  skill_protocol: z.enum(['asp', 'tools']).meta({
    description:
      'How a model proposes a skill and asks for what is missing. `asp`: by blocks in its text. `tools`: by the native tools `propose_skill` and `clarify`.',
    examples: ['tools'],
  }),
  allowed_hosts: z
    .array(
      z
        .string()
        .regex(
          /^(?:\*\.)?[a-z0-9.-]{1,253}(?::\d{1,5})?$/,
          'a host is a name in lower case, with `*.` before it or a port behind it at most',
        ),
    )
    .max(100)
    .meta({
      description: 'Hosts that HTTP and MCP tools may reach: `api.example.com`, or `*.example.com` for those below it.',
      examples: [['api.example.com', '*.acme.dev']],
    }),
  http_tools: httpTools.meta({
    description: 'Tools that are one HTTP request each, to one of `allowed_hosts`. docs/outside-tools.md describes the fields.',
    examples: [
      [
        {
          name: 'http.tickets.open',
          description: 'Opens a ticket',
          method: 'POST',
          url: 'https://tickets.example.com/v2/tickets',
          body: { title: '{{title}}' },
        },
      ],
    ],
  }),
  mcp_servers: mcpServers.meta({
    description: 'MCP servers on `allowed_hosts` whose tools the scope may use, each called `mcp.NAME.TOOL`.',
    examples: [[{ name: 'files', url: 'https://mcp.acme.dev/mcp' }]],
  }),
  parameters: z.record(z.string().min(1).max(64), z.json()).meta({
    description: "The agent's own parameters, as its tools and its trigger read them.",
    examples: [{ threshold: 5 }],
  }),
}

/** The schema of each setting by its name. */
export const settingFields: Readonly<Record<string, z.ZodType>> = fields

/** The effective settings of a scope, with its agent's defaults filled in. */
export const settings = z.strictObject(fields).partial({
  agent: true,
  instructions: true,
  when: true,
  tools: true,
  project: true,
  env: true,
  toolset: true,
  repo: true,
  goal_postconditions: true,
  k_cards: true,
  tau: true,
  policy_mode: true,
  blackboard_scratch: true,
  blackboard_probes: true,
})
export type Settings = z.infer<typeof settings>

/** Its meaning is that of the setting: the outer schema is the one that the API's description shows. */
function patchOf(schema: z.ZodType): z.ZodType {
  const { description, examples } = schema.meta() ?? {}
  return schema.nullable().optional().meta({ description, examples })
}

/** `retry` is changed field by field. */
const patchFields = { ...fields, retry: retryPatch.meta(fields.retry.meta() ?? {}) }

/** A merge patch: what is named changes, null goes back to the default. */
export const settingsPatch = z
  .strictObject(Object.fromEntries(Object.entries(patchFields).map(([name, schema]) => [name, patchOf(schema)])) as PatchShape)
  .refine((patch) => !namesTwoAttempts(patch), 'max_attempts and retry.max_attempts are one setting: name one of them')
  .refine((patch) => fitsBytes(JSON.stringify(patch), limits.settings_bytes), 'settings are at most 64 kB in all')
type PatchShape = { [Name in keyof typeof patchFields]: z.ZodOptional<z.ZodNullable<(typeof patchFields)[Name]>> }
export type SettingsPatch = z.infer<typeof settingsPatch>

export const defaultSettings: Settings = {
  consumer: 'turn',
  overlap: 'queue',
  max_attempts: defaultRetry.max_attempts,
  retry: defaultRetry,
  on_tool_error: 'continue',
  turn_timeout_ms: 60_000,
  effect_timeout_ms: 30_000,
  context_limit: 1000,
  inbox_limit: 250_000,
  retention_days: 7,
  idempotence_days: 400,
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
  const merged = { ...current, ...patch, ...mergeRetry(current, patch) }
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== null && value !== undefined))
}
