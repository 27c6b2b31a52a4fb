import { z } from 'zod'
import { originModes } from '../origin.ts'

const at = z.iso.datetime().nullable()
const modelCalls = z.object({
  status: z
    .enum(['answering', 'failing', 'silent', 'unknown'])
    .describe(
      '`answering`: the last call of every scope was answered. `failing`: the last calls of some scopes were not. ' +
        '`silent`: nobody was answered since, and events wait or failures are many. `unknown`: no call was made yet.',
    ),
  last_answer_at: at.describe('When a model answered last.'),
  failing_since: at.describe('The first failure without an answer since, in any scope.'),
  failures: z.int().describe('Calls that failed since the last answer of their scope.'),
  scopes_failing: z.int(),
  scopes_waiting: z.int().describe('Scopes whose events wait for the model: `GET /v1/scopes?state=model` lists them.'),
  asks_at: at.describe('When the first of them asks again.'),
  error: z.string().nullable().describe('The newest failure.'),
})
export type ModelCallReport = z.infer<typeof modelCalls>

export const controlPlane = z.object({
  url: z.string(),
  status: z
    .enum(['waiting', 'ok', 'degraded'])
    .describe('`waiting`: before its first contact, by the cron. `degraded`: it does not answer; what it sent earlier is used.'),
  error: z.string().nullable(),
  failing_since: at,
  synced_at: at.describe('The last contact, to within five minutes.'),
  revision: z.int().describe('Of the feed of skills.'),
  skipped: z
    .array(z.object({ version: z.string(), reason: z.string() }))
    .describe('Versions of its skills that this deployment cannot take.'),
})

const secret = z.object({ name: z.string(), problem: z.string().nullable() })
export const deployment = z.object({
  time: z.iso.datetime().meta({ description: 'The clock of the server.' }),
  bindings: z.object({
    present: z.array(z.string()),
    missing: z.array(z.string()).meta({ description: 'Required bindings that the deployment lacks.' }),
    unused: z.array(z.string()).meta({ description: 'Optional bindings that the deployment lacks or does not use.' }),
  }),
  schema: z.enum(['fits', 'outdated', 'unknown']).meta({
    description: 'Whether the tables in D1 fit this version. `unknown`: D1 did not answer, which says nothing about its tables.',
  }),
  schema_error: z.string().nullable().meta({ description: 'Why the tables in D1 do not fit this version; a migration is missing.' }),
  database_bytes: z.int().nullable().meta({ description: 'What D1 holds; null if it did not answer. The limit of the platform is 10 GB.' }),
  origins: z.enum(originModes).meta({ description: 'The setting `origins` of scopes that set none.' }),
  assumed_destinations: z.record(z.string(), z.array(z.string())).meta({
    description: 'Arguments of the tools of agents that are taken for destinations by their format or name: these tools declare none.',
  }),
  unpriced_budgets: z
    .array(z.object({ name: z.string(), problem: z.string() }))
    .nullable()
    .meta({
      description:
        'Budgets in money of the deployment and its agents that allow no call, since the price of the model is not known; ' +
        'null unless the key is an admin of every scope. The state of each scope has `budget_problem`.',
    }),
  secrets: z.array(secret).nullable().meta({
    description: 'Names of the secrets that are set, and what is wrong with them; null unless the key is an admin of every scope.',
  }),
  unknown_variables: z
    .array(z.object({ name: z.string(), nearest: z.string() }))
    .nullable()
    .meta({
      description:
        'Variables that begin with `REFLEX_` and that nothing of Reflex reads, each with the nearest name that is read; ' +
        'null unless the key is an admin of every scope.',
    }),
})

const part = z.object({ ok: z.boolean(), duration_ms: z.number(), error: z.string().nullable() })

const configured = z.object({ ok: z.boolean(), error: z.string().nullable() })
export const readiness = z.object({
  status: z.enum(['ready', 'unavailable']),
  database: part,
  queue: part,
  model: configured.meta({
    description:
      'Checks that REFLEX_MODEL names a model and that its configuration is complete, and that of REFLEX_DECISION_MODEL if it is set. ' +
      'No model is called: whether it answers is judged by what the calls of scopes did.',
  }),
})
const packDatabase = z.object({
  name: z.string(),
  error: z.string().nullable().meta({ description: 'Why it does not answer; lists lack its events.' }),
  bytes: z.int().nullable().meta({ description: 'Of its packed events.' }),
  database_bytes: z.int().nullable().meta({ description: 'All that it holds. The limit of the platform is 10 GB.' }),
  bytes_per_day: z.int().nullable().meta({ description: 'What a day of packed events takes; null within the first day.' }),
  kept_days: z.number().nullable().meta({ description: 'The days of events that fit into REFLEX_EVENTS_BYTES, at this rate.' }),
})
const depth = z.object({ scope: z.string(), agent: z.string(), open: z.int() })
export const health = z.object({
  status: z.enum(['ok', 'degraded']),
  database: part,
  queue: part,
  archive: part.nullable().meta({ description: 'Whether R2 responds; null without the binding ARCHIVE.' }),
  inboxes: z.object({ scopes: z.int(), open: z.int(), largest: z.array(depth) }).nullable(),
  parked: z
    .object({ scopes: z.int(), work: z.int() })
    .nullable()
    .meta({ description: 'Work that repeatedly crashed its scope; the state of each scope lists it.' }),
  ledger: z
    .object({
      bytes: z.int().meta({ description: 'The size of the Ledger object, which holds at most 10 GB.' }),
      retention_days: z
        .number()
        .nullable()
        .meta({ description: 'REFLEX_LEDGER_RETENTION_DAYS; null if it is invalid, in which case nothing leaves the Ledger.' }),
    })
    .nullable(),
  dead_letters: z.object({ total: z.int(), by_origin: z.object({ scope: z.int(), queue: z.int() }) }).nullable(),
  skills: z
    .object({
      active: z.int(),
      failed: z.int().meta({ description: 'Versions whose latest test failed.' }),
      warning: z.string().nullable(),
    })
    .nullable()
    .meta({ description: 'Versions of skills that the key may read. The warning is given when they are many.' }),
  retention: z
    .object({
      days: z
        .number()
        .nullable()
        .meta({ description: 'REFLEX_RETENTION_DAYS; null if it is invalid, in which case nothing is deleted from D1.' }),
      backlog: z.int().meta({
        description:
          'Events that D1 has kept for longer, counted up to 10,000. More than a few thousand while idle means that deletion cannot keep up. A key of some scopes sees thousands.',
      }),
      oldest: z.string().nullable(),
      packs: z
        .object({
          bytes: z.int(),
          most_bytes: z
            .number()
            .nullable()
            .meta({ description: 'REFLEX_EVENTS_BYTES, of one database; null if it is invalid, in which case no pack leaves for it.' }),
          kept_days: z.number().nullable().meta({
            description:
              'The days of events that fit, at the rate until now, in the database that keeps the fewest; null within the first day.',
          }),
          leave_in_days: z.number().nullable().meta({
            description: 'The days until a database is so full that its oldest events leave, at this rate; null within the first day.',
          }),
        })
        .meta({
          description:
            'Packed events in all databases. The oldest leave a database beyond the bytes: to the archive, or else they are forgotten.',
        }),
      databases: z
        .array(packDatabase)
        .meta({ description: 'Each database with packed events: `DB`, and EVENTS_DB_1 to EVENTS_DB_16 where they are bound.' }),
    })
    .nullable(),
  control_plane: controlPlane
    .nullable()
    .meta({ description: 'The deployment whose skills and policy this one follows; null without one.' }),
  model: z.string(),
  model_error: z.string().nullable().meta({ description: 'Why the configured model cannot be used.' }),
  model_calls: modelCalls.nullable().meta({ description: 'What the calls of models did, in the scopes of the key.' }),
  agents: z.array(z.string()),
  event_types: z.array(z.string()),
  deployment: deployment.nullable(),
})
