import { z } from '@hono/zod-openapi'
import { httpToolSetting } from '../../contract/outside-tools.ts'
import { workKinds } from '../../contract/parked-work.ts'
import { settingFields, settings as fullSettings } from '../../contract/settings.ts'
import { event } from './schemas.ts'

const time = z.iso.datetime()
const count = z.int()

const requestBody = z.union([z.string(), z.array(z.unknown()), z.record(z.string(), z.unknown())]).optional()

const meaningOf = (name: string): string => settingFields[name]?.description ?? ''

/** Any JSON is recursive: the generator would not come to an end. */
export const settings = fullSettings
  .extend({
    parameters: z.record(z.string(), z.unknown()).meta({ description: meaningOf('parameters') }),
    blackboard: z.record(z.string(), z.record(z.string(), z.unknown()).optional()).meta({ description: meaningOf('blackboard') }),
    http_tools: z.array(z.object({ ...httpToolSetting.shape, body: requestBody })).meta({ description: meaningOf('http_tools') }),
  })
  .openapi('Settings')

export const scopeSummary = z
  .object({ scope: z.string(), agent: z.string(), open: count.meta({ description: 'Events without an outcome.' }), updated_at: time })
  .openapi('ScopeSummary')

const counters = z.object({
  accepted: count,
  duplicates: count,
  completed: count,
  ignored: count,
  dead_lettered: count,
  cancelled: count,
  retried: count,
  turns: count,
  turns_failed: count,
  reflex_actions: count.meta({ description: 'Events that a reflex decided, with no model.' }),
  effects: count,
  effects_failed: count,
  model_calls: count,
  input_tokens: count,
  output_tokens: count,
  cost_usd: z.number(),
})

const modelWait = z.object({
  since: time,
  until: time.meta({ description: 'When the model is asked again.' }),
  tries: count.meta({ description: 'How many turns asked in vain.' }),
  detail: z.string(),
})

export const scopeState = z
  .object({
    scope: z.string(),
    agent: z.string(),
    settings,
    inbox: z.object({ pending: count, processing: count, delayed: count }),
    context: z.object({ events: count }),
    counters,
    turn: z.object({ turn_id: z.string(), since: time, events: count }).nullable(),
    llm_tokens_remaining: count.nullable(),
    waiting_for_model: modelWait.nullable().meta({ description: 'Null while the model can be reached, as far as the scope knows.' }),
    sockets: count,
    outbox: z.object({ waiting: count, last_error: z.string().nullable() }),
    parked: z
      .array(
        z.object({
          kind: z.enum(workKinds).meta({ description: 'What kind of work it is.' }),
          id: z.string().meta({
            description:
              "An event's place in the inbox (turns, events, outbox), the id of a run or an action, or the name of a timer or setting.",
          }),
          deaths: count.meta({ description: 'How often it took the scope down, or failed.' }),
          reason: z.string().meta({ description: 'What happened the last time.' }),
          parked_at: time,
        }),
      )
      .meta({
        description:
          'Work that took the scope down again and again and is not begun any more, the newest 100. docs/durability.md says how to go on.',
      }),
    last_seq: count,
  })
  .openapi('ScopeState')

export const contextView = z
  .object({
    scope: z.string(),
    created_at: time,
    last_action_at: time.nullable(),
    events: z.array(event),
    count: count.meta({ description: 'How many events the context holds in all.' }),
    scratch: z.record(z.string(), z.unknown()),
    next_cursor: z.string().nullable().meta({ description: 'Where older events follow; null where these are the oldest.' }),
  })
  .openapi('DecisionContext')

export const logEntry = z
  .looseObject({
    seq: count,
    at: time,
    kind: z.string(),
    trace_id: z.string(),
    span_id: z.string(),
    parent_id: z.string().nullable(),
    event_ids: z.array(z.string()).meta({ description: 'The newest 100 of the events that it is about, oldest first.' }),
    event_count: count.optional().meta({
      description:
        'How many events it is about, where `event_ids` does not list them all. `turn-started` has all, in `considered`, as ranges of `seq`.',
    }),
    duration_ms: z.number().nullable(),
  })
  .openapi('LogEntry', { description: "The kind's own fields stand beside these. Kinds are noun-verb: `event-accepted`, `turn-ended`, …" })
