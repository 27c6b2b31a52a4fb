import { z } from 'zod'
import { anchorsSetting } from './anchors.ts'
import { blackboard, blackboardLayers } from './blackboard.ts'
import { budgetSetting } from './budget.ts'
import { limits } from '../../base/limits.ts'
import { eventTypes } from './event-types.ts'
import { decisionModelSetting } from '../../features/decisions/contract/setting.ts'
import { effectiveMarket, marketPatch, marketSetting, mergeMarket } from '../../features/market/contract/setting.ts'
import { outsideTools } from './outside-tools.ts'
import { reflexReference } from '../reflex.ts'
import {
  defaultLearning,
  effectiveLearning,
  learningPatch,
  learningSettings,
  mergeLearning,
} from '../../features/learning/contract/setting.ts'
import { defaultRetry, effectiveRetry, mergeRetry, namesTwoAttempts, onToolError, retryPatch, retrySettings } from './retry.ts'
import { fitsBytes } from '../../base/json.ts'
import { originSettings } from './origins.ts'
import { overlap, whenFunctions, whenWindows } from './when.ts'
import { closed, setting } from '../setting.ts'
import { webhooks } from '../../features/notices/contract/setting.ts'

/** The settings by which skills fit a scope, and that choose between them. */
const skillSettings = {
  project: setting(
    z.string().min(1).max(200),
    "The project of the scope's agent. Skills whose manifest names another `compat.project` are rejected.",
    'acme/shop',
  ),
  env: setting(
    z.union([z.string().min(1).max(64), z.array(z.string().min(1).max(64)).max(16)]),
    'The environment or environments to compare with `compat.env` of skills.',
    'staging',
  ),
  toolset: setting(z.string().min(1).max(64), 'The toolset to compare with `compat.toolset` of skills.', 'kubernetes'),
  repo: setting(z.string().min(1).max(300), 'The repository to compare with `compat.repo` of skills.', 'github.com/acme/shop'),
  goal_labels: setting(
    z.array(z.string().trim().min(1).max(64)).max(50),
    'Labels of the current goal. A skill with one of them scores higher at the gate.',
    ['defence'],
  ),
  goal_postconditions: setting(
    z.array(z.string().trim().min(1).max(128)).max(50),
    'Desired effects, as named in the `effects` of manifests. Of skills with equal scores, the one with more of them ranks first.',
    ['updated:appservice_image'],
  ),
  k_cards: setting(z.int().min(0).max(5), 'Maximum number of skills in the bulletin. Default: 5.', 3),
  tau: setting(
    z.number().min(0).max(1),
    'The share of its maximum score that a skill must reach at the gate, unless its manifest has a `tau`. Default: 0.85.',
    0.7,
  ),
  approval_events: setting(
    z.boolean(),
    'True: the end of an approval of a run becomes an event of the type `approval.ended` in this scope, which reflexes and the agent see. See docs/approvals.md. Default: false.',
    true,
  ),
  refused_skills: setting(
    z.array(z.string().min(1).max(128)).max(100),
    'Skills that this scope never runs, whoever registered them: ids, versions (`id@version`) or patterns with `*`.',
    ['shop.refund', 'pay.*'],
  ),
  policy_mode: z.enum(['enforce', 'observe']).meta({
    description: '`observe` runs a skill even if its policy denies it, and logs the decision. Default: `enforce`.',
    examples: ['observe'],
  }),
}

const WHEN = Object.keys(whenWindows)

const tokenBudget = closed({
  tokens: z.int().min(0).meta({ description: 'Input and output tokens together.' }),
  per: z.enum(['hour', 'day', 'total']).meta({ description: 'Hours and days are in UTC.' }),
})

const days = (most: number) => z.number().positive().max(most)

/** The metadata of each setting is also the API description and docs/settings.md. */
const fields = {
  agent: setting(
    z.string().min(1).max(64),
    'The agent that serves this scope, by name. Unset: the first agent whose pattern matches the scope.',
    'prompted',
  ),
  paused: setting(
    z.boolean(),
    'True: the scope accepts events and keeps them, but starts no turn, asks no decision model, runs no reflex and hands out no claim, until it is false or null. ' +
      'What runs already ends. Default: false.',
    true,
  ),
  reflexes_off: setting(
    z.array(z.string().min(1).max(128)).max(100),
    'Reflexes of the chain that do not act here, by id; `*` is all of them. Their events go to the next in the chain, or to a turn.',
    ['*'],
  ),
  consumer: setting(
    z.enum(['turn', 'pull']),
    '`turn`: the agent handles events in turns. `pull`: an external consumer claims, acknowledges and rejects them.',
    'pull',
  ),
  overlap: setting(
    overlap,
    'Handling of events that arrive during a turn. `queue`: the next turn considers them. `interrupt`: the turn is aborted and restarted ' +
      'with them, too. `drop`: they join the context without a turn. `debounce`: a turn waits for a quiet period, and considers what came until then. ' +
      'A turn considers no more than `turn_limit` says.',
    { debounce: { quiet_ms: 2000, max_ms: 10_000 } },
  ),
  max_attempts: setting(
    retrySettings.shape.max_attempts,
    'Maximum number of attempts before an event becomes a dead letter. Short for `retry.max_attempts`: the latest change wins.',
    5,
  ),
  retry: setting(
    retrySettings,
    'How failures are retried, and how long events wait for an unavailable model provider. A patch changes only the fields it contains.',
    { max_attempts: 5, backoff_ms: 500, max_backoff_ms: 60_000, model_outage_s: 3600 },
  ),
  on_tool_error: onToolError,
  turn_timeout_ms: setting(
    z.int().min(10).max(600_000),
    'Maximum duration of a turn. A longer turn is aborted and its events are retried.',
    120_000,
  ),
  effect_timeout_ms: setting(
    z.int().min(10).max(600_000),
    'Maximum duration of a tool call, unless the tool has its own `timeout_ms`.',
    10_000,
  ),
  context_limit: setting(
    z.int().min(1).max(10_000),
    'Maximum number of considered events in the DecisionContext. The oldest leave first.',
    200,
  ),
  turn_limit: setting(
    z.strictObject({
      events: z.int().min(1).max(10_000).describe('Maximum number of events.'),
      bytes: z.int().min(1000).max(limits.context_bytes).describe('Maximum size of the events together. One event may be larger.'),
    }),
    'What one turn considers at most, the oldest events first. It does not see the others that wait: they have the next turns. ' +
      'Set it to what one prompt can show, and one model can do. Unset: `context_limit` events.',
    { events: 20, bytes: 50_000 },
  ),
  inbox_limit: setting(
    z.int().min(1).max(1_000_000),
    'Maximum number of events without an outcome. Further events are rejected with 429.',
    10_000,
  ),
  retention_days: setting(
    days(365),
    'Retention of events with an outcome, the log and the effect journal. Duplicate event ids are recognised for the same time.',
    30,
  ),
  idempotence_days: setting(
    days(36_500),
    'Retention of the idempotency keys of successful effects and plans, at least `retention_days`: until then none is repeated. ' +
      'After `retention_days` only a hash of the key and an output of at most 256 bytes remain.',
    3650,
  ),
  token_budget: setting(
    tokenBudget.nullable(),
    'Maximum number of model tokens. Once it is reached, events wait for the next period or a higher budget. null: no limit.',
    { tokens: 100_000, per: 'day' },
  ),
  budget: budgetSetting,
  redact: setting(
    z.array(z.string().min(1).max(64)).max(100),
    'Fields whose values are masked in the log, in addition to the usual ones (password, token, …).',
    ['email', 'phone'],
  ),
  pasted_secrets: setting(
    z.enum(['keep', 'mask', 'mask_prompts']),
    'What looks like a credential by its form: a token, a private key, a password after its name or within an address. `mask`: the log, spans and D1 show its kind ' +
      'in its place. `mask_prompts`: models see no more than that, either. The event keeps it, and with it what a tool gets by its input. `keep`: nothing is masked. Default: `mask`.',
    'mask_prompts',
  ),
  instructions: setting(
    z.string().max(20_000),
    'The system prompt of the built-in agents `prompted` and `chat`. `prompted` calls no model without it.',
    'You triage messages. Answer in one line.',
  ),
  memory: setting(
    z.strictObject({
      turns: z.int().min(1).max(50).meta({ description: 'Maximum number of past turns, the newest ones.' }),
      tokens: z.int().min(100).max(8000).meta({ description: 'Maximum number of tokens that they take, by an estimate.' }),
    }),
    'Past turns that the built-in agent `prompted` shows to its model: events and reply of each, without redacted values. They are kept in the scratch. ' +
      'Unset: each turn stands alone.',
    { turns: 10, tokens: 2000 },
  ),
  model: setting(
    z.string().min(1).max(200),
    "The model of this scope's turns, which the deployment must be able to serve. Unset: `REFLEX_MODEL` of the deployment. An agent may set its own.",
    'workers-ai/@cf/openai/gpt-oss-20b',
  ),
  event_types: eventTypes,
  when: setting(
    z.string().max(2000),
    'The condition for the built-in agent `prompted` to call a model: a boolean CEL expression. Its variables are `total` (events in the context), `by_type["TYPE"]` and ' +
      `\`by_source["SOURCE"]\`, for the whole context, or as fields of ${WHEN.slice(0, -1).join(', ')} and ${WHEN.at(-1)}, for the latest events only. ` +
      `Functions: ${whenFunctions.join(', ')}.`,
    'last_1m.total >= 3 || by_type["timer.tick"] > 0',
  ),
  tools: setting(
    z.array(z.string().min(1).max(128)).max(100),
    "Names of the tools that this scope may use: its agent's, and those that `http_tools` and `mcp_servers` declare. Unset: all of them.",
    ['http.tickets.open'],
  ),
  deny_tools: setting(
    z.array(z.string().min(1).max(128)).max(100),
    'Tools that nothing in this scope may call, by names in which `*` stands for any text: not even those that `tools` names. Tools that a caller runs itself are `caller.NAME` ([one URL](one-url.md)).',
    ['caller.delete_*'],
  ),
  reflexes: setting(
    z.array(reflexReference).max(limits.chain_length),
    'The reflexes that run on each event before a model, in this order. The first one that returns an action decides.',
    [{ id: 'greet', cooldown_s: 10 }],
  ),
  learning: setting(
    learningSettings,
    'How reflexes and skills are learned from decisions. A patch changes only the fields it contains. See docs/learning.md.',
    {
      mode: 'auto',
      min_agreement: { default: 0.99, refund: 0.999 },
      min_support: 5,
      window: 10_000,
      trusted_sources: [],
      replies: 'heard',
      final_tools: ['caller.delete_*'],
      audit_share: 0.02,
    },
  ),
  market: marketSetting,
  decision_model: setting(
    decisionModelSetting,
    'A question to a decision model about each event that no reflex decided, and the action for each answer. The turn considers what it does not ' +
      'decide. See docs/decision-models.md.',
    {
      name: 'brute-force',
      types: ['log.line'],
      question: { type: 'noul', instructions: 'Does this line belong to an attack?' },
      actions: { false: { action_type: 'ignore', reason: 'no attack' } },
    },
  ),
  ...skillSettings,
  blackboard: setting(blackboard, "The initial blackboard of each turn: values for skills' expressions and templates.", {
    ctx: { friends: ['192.0.2.7'] },
  }),
  ...blackboardLayers,
  skill_protocol: setting(
    z.enum(['asp', 'tools']),
    'How a model proposes a skill or asks for missing input. `asp`: by blocks in its text. `tools`: by the tools `propose_skill` and `clarify`.',
    'tools',
  ),
  ...outsideTools,
  anchors: anchorsSetting,
  ...originSettings,
  webhooks,
  parameters: z.record(z.string().min(1).max(64), z.json()).meta({
    description: "Parameters for the agent's tools and trigger.",
    examples: [{ threshold: 5 }],
  }),
}

export const settingFields: Readonly<Record<string, z.ZodType>> = fields

export const settings = z.strictObject(fields).partial({
  agent: true,
  instructions: true,
  model: true,
  memory: true,
  event_types: true,
  turn_limit: true,
  budget: true,
  pasted_secrets: true,
  when: true,
  tools: true,
  deny_tools: true,
  project: true,
  env: true,
  toolset: true,
  repo: true,
  goal_postconditions: true,
  decision_model: true,
  market: true,
  k_cards: true,
  tau: true,
  policy_mode: true,
  approval_events: true,
  refused_skills: true,
  paused: true,
  reflexes_off: true,
  blackboard_scratch: true,
  blackboard_probes: true,
})
export type Settings = z.infer<typeof settings>

/** The API description shows the metadata of the outer schema. */
function patchOf(schema: z.ZodType): z.ZodType {
  const { description, examples } = schema.meta() ?? {}
  return schema.nullable().optional().meta({ description, examples })
}

/** `retry`, `learning` and `market` are patched field by field. */
const patchFields = {
  ...fields,
  retry: retryPatch.meta(fields.retry.meta() ?? {}),
  learning: learningPatch.meta(fields.learning.meta() ?? {}),
  market: marketPatch.meta(fields.market.meta() ?? {}),
}

/** A merge patch: omitted settings stay, null restores the default. */
export const settingsPatch = closed(
  Object.fromEntries(Object.entries(patchFields).map(([name, schema]) => [name, patchOf(schema)])) as PatchShape,
)
  .refine((patch) => !namesTwoAttempts(patch), 'max_attempts and retry.max_attempts are one setting: set only one')
  .refine((patch) => fitsBytes(JSON.stringify(patch), limits.settings_bytes), 'settings must be at most 64 kB in total')
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
  learning: defaultLearning,
  goal_labels: [],
  blackboard: {},
  skill_protocol: 'asp',
  allowed_hosts: [],
  http_tools: [],
  mcp_servers: [],
  anchors: [],
  origins: 'observe',
  trusted_senders: ['key:admin'],
  plan_first: false,
  trusted_text: [],
  webhooks: [],
  parameters: {},
}

export function mergeSettings(current: SettingsPatch, patch: SettingsPatch): SettingsPatch {
  const merged = { ...current, ...patch, ...mergeRetry(current, patch), ...mergeLearning(current, patch), ...mergeMarket(current, patch) }
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== null && value !== undefined))
}

/** The settings that are groups of their own: of each field, the last one that is given. */
export function effectiveGroups(given: readonly SettingsPatch[]) {
  const retry = effectiveRetry(given)
  return { retry, max_attempts: retry.max_attempts, learning: effectiveLearning(given), market: effectiveMarket(given) }
}
