import { z } from 'zod'
import type { Event } from '../core/event.ts'
import { event } from './event-record.ts'
import { httpToolSetting } from './settings/outside-tools.ts'
import { settingFields, settings as fullSettings, type Settings } from './settings/settings.ts'

const time = z.iso.datetime()
const count = z.int()

const requestBody = z.union([z.string(), z.array(z.unknown()), z.record(z.string(), z.unknown())]).optional()
const described = <Schema extends z.ZodType>(schema: Schema, name: string): Schema =>
  schema.meta({ description: settingFields[name]?.description ?? '' })

const toolInput = z.record(z.string(), z.unknown()).optional().meta({ description: httpToolSetting.shape.input.description })

/** The settings in responses. The API generator cannot expand recursive JSON. */
export const settings = fullSettings
  .extend({
    parameters: described(z.record(z.string(), z.unknown()), 'parameters'),
    blackboard: described(z.record(z.string(), z.record(z.string(), z.unknown()).optional()), 'blackboard'),
    event_types: described(z.record(z.string(), z.record(z.string(), z.unknown())), 'event_types').optional(),
    http_tools: described(z.array(z.object({ ...httpToolSetting.shape, input: toolInput, body: requestBody })), 'http_tools'),
  })
  .meta({ id: 'Settings' })

/** Scopes that need a look: open events, a turn in flight, parked work, or no model. */
export const scopeStates = ['open', 'turn', 'parked', 'model'] as const
export type ScopeStateFilter = (typeof scopeStates)[number]

export const scopeSummary = z
  .object({
    scope: z.string(),
    agent: z.string(),
    open: count.describe('Events without an outcome.'),
    turn_since: time.nullable().describe('The start of the turn in flight; null without one.'),
    parked: count.describe('Work that repeatedly crashed the scope and is no longer started.'),
    asks_model_at: time
      .nullable()
      .describe('When it asks the model again, which does not answer and for which its events wait; null while they do not.'),
    accepted: count.describe('Accepted events since the scope exists. This and the following numbers lag by up to a minute.'),
    fire_share: z.number().nullable().describe('Events decided by a reflex, of those and the model calls; null without either.'),
    cost_usd: z.number().describe('Cost of its model calls since the scope exists, without those whose price is unknown.'),
    unpriced_model_calls: count.describe('Model calls whose price is unknown.'),
    updated_at: time,
  })
  .meta({ id: 'ScopeSummary', description: 'About a second behind the scope.' })
export type ScopeSummary = z.infer<typeof scopeSummary>

export const counters = z.object({
  accepted: count,
  duplicates: count,
  completed: count,
  ignored: count,
  dead_lettered: count,
  cancelled: count,
  retried: count,
  turns: count,
  turns_failed: count,
  reflex_actions: count.describe('Events decided by a reflex, without a model.'),
  effects: count,
  effects_failed: count,
  model_calls: count,
  input_tokens: count,
  output_tokens: count,
  cost_usd: z.number(),
  unpriced_calls: count.describe('Model calls whose price is unknown: `cost_usd` leaves them out.'),
})
export type Counters = z.infer<typeof counters>

export const modelWait = z.object({
  since: time,
  until: time.describe('When the scope retries the model.'),
  tries: count.describe('Number of turns that got no response from the model.'),
  detail: z.string(),
})
export type ModelWait = z.infer<typeof modelWait>

/** `request`: work on behalf of a caller, which is never restarted. */
const workKinds = [
  'event',
  'turn',
  'run',
  'action',
  'timer',
  'outbox',
  'setting',
  'retention',
  'recovery',
  'request',
  'audit',
  'notice',
] as const
export type WorkKind = (typeof workKinds)[number]

const parkedWork = z.object({
  kind: z.enum(workKinds).describe('The kind of work.'),
  id: z
    .string()
    .describe("An event's position in the inbox (turns, events, outbox), the id of a run or an action, or the name of a timer or setting."),
  deaths: count.describe('Number of times it crashed the scope, or failed.'),
  reason: z.string().describe('The latest failure.'),
  parked_at: time,
})
export type ParkedWork = z.infer<typeof parkedWork>

const depth = z.object({ pending: count, processing: count, delayed: count })
export type Depth = z.infer<typeof depth>

export const archivedFile = z
  .object({
    number: z.int().describe('Position in the manifest, and the name of the files.'),
    kind: z.enum(['log', 'events', 'parts']).describe('`parts`: values that log entries refer to by their hash.'),
    day: z.iso.date().describe('The day (UTC) on which the scope stored the rows.'),
    first_seq: z.int(),
    last_seq: z.int().describe('Every log entry between the two is in the file. Numbers of events may have gaps; parts have none.'),
    rows: count,
    schema_version: z.int(),
    files: z.array(z.object({ format: z.enum(['jsonl', 'parquet', 'chain']), path: z.string(), bytes: count, sha256: z.string() })),
    archived_at: time,
  })
  .meta({ id: 'ArchivedFile', description: 'Rows that the scope has moved to the archive.' })
export type ArchivedFile = z.infer<typeof archivedFile>

export const scopeState = z
  .object({
    scope: z.string(),
    agent: z.string(),
    settings,
    inbox: depth,
    context: z.object({ events: count }),
    counters,
    fired: z
      .object({ share: z.number().nullable(), decided: count, model_calls: count })
      .describe('Events decided by a reflex, of those and the model calls; as in the list of scopes and in `reflexes.fire_share`.'),
    turn: z.object({ turn_id: z.string(), since: time, events: count }).nullable(),
    llm_tokens_remaining: count.nullable(),
    waiting_for_model: modelWait.nullable().describe('Null while the model provider is believed to be reachable.'),
    budget_problem: z
      .string()
      .nullable()
      .describe('Why a budget in money allows no call of the model, whose price is not known; null if it does.'),
    sockets: count,
    outbox: z.object({ waiting: count, last_error: z.string().nullable() }),
    spans: z
      .object({
        waiting: count.describe('Log entries that were not exported yet.'),
        exported: count.describe('Spans that the collector took.'),
        dropped: count.describe('Spans that the collector rejected, or that waited for it for too long.'),
        last_error: z.string().nullable(),
      })
      .nullable()
      .describe('The export of spans. Null if the deployment has no collector.'),
    archive: z
      .object({ files: count, last_error: z.string().nullable().describe('Expired data is kept until the archive has it.') })
      .nullable()
      .describe('Null if the deployment has no archive.'),
    parked: z
      .array(parkedWork)
      .describe(
        'Work that repeatedly crashed the scope and is no longer started, newest 100. See docs/durability.md for how to resume it.',
      ),
    last_seq: count,
  })
  .meta({ id: 'ScopeState' })
export type ScopeState = Omit<z.infer<typeof scopeState>, 'settings'> & { settings: Settings }

export const contextView = z
  .object({
    scope: z.string(),
    created_at: time,
    last_action_at: time.nullable(),
    events: z.array(event),
    count: count.describe('Total number of events in the context.'),
    scratch: z.record(z.string(), z.unknown()),
    next_cursor: z.string().nullable().describe('Pass it as `cursor` for older events; null on the last page.'),
  })
  .meta({ id: 'DecisionContext' })
export type ContextView = Omit<z.infer<typeof contextView>, 'events'> & { events: Event[] }

const chainReflex = z.object({
  id: z.string(),
  version: z.int().nullable().describe('The version that acts; null if none does.'),
  watching: z.int().nullable().describe('The version that runs in shadow mode.'),
  by_proof: z.boolean().describe('It acts only as far as its certificate in this scope allows.'),
  absent: z.string().nullable().describe('Why no version acts, or an earlier one does: the version is suspended, missing or unproven.'),
  cooldown_s: z.number().nullable(),
  rate: count.nullable().describe('Maximum number of fires per minute.'),
})

export const scopeChain = z
  .object({
    scope: z.string(),
    agent: z.object({ name: z.string(), version: z.string().nullable() }),
    consumer: z.enum(['turn', 'pull']).describe('`pull`: an external consumer decides, and the rest of the chain is not used.'),
    filters: z
      .object({ count, types: z.array(z.string()).describe('Event types that the filters name.') })
      .describe('An event that no filter passes is ignored. Without filters every event passes.'),
    reflexes: z.array(chainReflex).describe('In order. The first one that returns an action decides.'),
    decision_model: z
      .object({
        name: z.string(),
        model: z.string(),
        types: z.array(z.string()).nullable().describe('The types of events that it decides; null for all.'),
        threshold: z.number().nullable().describe('The least probability to act on; null while it is only compared with turns.'),
      })
      .nullable(),
    turn: z
      .object({ model: z.string(), tools: z.array(z.string()).describe('The tools that it may use.') })
      .nullable()
      .describe('Null if the agent has no trigger: what no reflex decides joins the context and nothing else happens.'),
  })
  .meta({ id: 'ScopeChain', description: 'What decides on an event, in order.' })
export type ScopeChain = z.infer<typeof scopeChain>

export const scopeTool = z
  .object({
    name: z.string(),
    description: z.string(),
    acts: z.boolean().describe('False if it only reads.'),
    plans_only: z.boolean().describe('Only steps of skills may call it.'),
    destinations: z.array(z.string()).describe('Arguments that decide where a call goes or on whom it acts, as paths.'),
    assumed: z
      .boolean()
      .describe('True if the tool declares none, so that they follow from the formats and names of its arguments (docs/security.md).'),
    unavailable: z.string().optional().describe('Why this tool, or this whole MCP server, cannot be called now.'),
  })
  .meta({ id: 'ScopeTool' })
export type ScopeTool = z.infer<typeof scopeTool>

/**
 * A text as a part of a scope's name, another one for each text: what is special in a name, and `/`
 * above all, is `:` and two hex digits for each byte.
 */
export const escapedName = (text: string): string => text.toWellFormed().replaceAll(/[^A-Za-z0-9._@-]/gu, byteCodes)
const byteCodes = (character: string): string =>
  Array.from(new TextEncoder().encode(character), (byte) => `:${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')
