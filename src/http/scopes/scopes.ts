import { z } from '@hono/zod-openapi'
import { eventRecord } from '../../contract/event-record.ts'
import { limits } from '../../base/limits.ts'
import { defaultSettings, settings as fullSettings, settingsPatch, type SettingsPatch } from '../../contract/settings/settings.ts'
import { listScopes } from '../../store/scopes.ts'
import { guard, json, jsonRequest, jsonText, problems, resource, routes, scopePath, traceId } from '../describe/describe.ts'
import { paged, pageLimit } from '../../contract/paging.ts'
import { search } from '../describe/paging.ts'
import { forbidden, invalid, notFound, refuseInvalid, unavailable } from '../problems/refusals.ts'
import { coversScope, type Principal } from '../../contract/principal.ts'
import type { Env } from '../../env.ts'
import { isGlobalKey } from '../../tools/tool-keys.ts'
import { secretsNamedIn, useRefusal } from '../../tools/tool-secrets.ts'
import { described, plainSchema } from '../body/plain-schema.ts'
import { archivedFile, contextView, modelWait, scopeState, scopeStates, scopeSummary, settings } from '../../contract/scope.ts'
import { logEntry } from '../../contract/log-entry.ts'
import { isAdminOfAll } from '../market/account-access.ts'
import { recordIn } from './record.ts'
import { traceContextOf, validTraceparent } from '../../events/traceparent.ts'
import { storeOf } from '../../store/store.ts'

const route = routes('Scopes')

const list = route('get /v1/scopes', 'listScopes', 'List scopes, by name', {
  ...guard({ roles: ['viewer'] }),
  request: {
    query: z.object({
      search: search.describe('Case-insensitive search in the names of scopes and their agents.'),
      state: z
        .enum(scopeStates)
        .optional()
        .describe('Only scopes with open events, with a turn in flight, with parked work, or whose events wait for the model.'),
      limit: pageLimit(1000),
      cursor: z.string().max(128).default(''),
    }),
  },
  responses: { 200: json(paged(scopeSummary), 'A page.'), ...problems(400) },
})

const state = route('get /v1/scopes/{scope}', 'getScope', "Get a scope's state", {
  description: 'Inbox depths, the turn in flight, counters and settings. A scope without events is empty; it is never reported as missing.',
  ...guard({ roles: ['viewer'], scoped: true }),
  request: { params: scopePath },
  responses: { 200: json(scopeState, 'The state.'), ...problems(400) },
})

const configure = route('patch /v1/scopes/{scope}', 'updateScopeSettings', "Change a scope's settings", {
  description:
    'A merge patch: only the given settings change; null restores the default. docs/settings.md describes each setting. ' +
    "Tools whose secret isn't allowed for their host (`REFLEX_TOOL_X_HOSTS`) are rejected.",
  ...guard({ roles: ['operator'], scoped: true, body: 'json' }),
  request: {
    params: scopePath,
    body: jsonRequest(described<SettingsPatch>(plainSchema(settingsPatch)), {
      instructions: 'You answer in one sentence.',
      when: 'last_1m.total >= 3',
    }),
  },
  responses: { 200: json(z.object({ scope: z.string(), settings }), 'The updated settings.'), ...problems(400, 413, 415) },
})

const schema = route('get /v1/settings/schema', 'getSettingsSchema', 'Get the JSON Schema of the settings', {
  description:
    'For editors and forms: each setting with its description, examples and the default that holds unless the agent has another one.',
  ...guard({ roles: ['viewer'] }),
  responses: { 200: json(z.record(z.string(), z.unknown()), 'JSON Schema, draft 2020-12.'), ...problems() },
})

const place = z.coerce.number<string>().int().min(1)
const seq = z.coerce.number<string>().int().min(0)
const context = route('get /v1/scopes/{scope}/context', 'getContext', 'Get the DecisionContext', {
  description:
    'The working memory of the scope: the events since the last action, oldest first, and the scratch. A page holds the newest ' +
    '`limit` events, at most 4 MB; pass its `next_cursor` as `cursor` for older ones. With `at`, it is rebuilt from the log, ' +
    'as it was after that entry; 404 if the log has no such entry, or retention has deleted what the context is made from.',
  ...guard({ roles: ['viewer'], scoped: true }),
  request: {
    params: scopePath,
    query: z.object({
      limit: pageLimit(10_000, 1000).describe('Number of events, newest first.'),
      cursor: place.optional(),
      at: seq.optional().describe('The `seq` of an entry of the log; 0 for the empty context before the first.'),
    }),
  },
  responses: { 200: json(contextView, 'The context.'), ...problems(400, 404, 503) },
})

const log = route('get /v1/scopes/{scope}/log', 'readLog', 'Read the log, oldest first', {
  description:
    'Everything the scope perceived, decided and did. `next_cursor` is the `after` of the next page; null at the current end. ' +
    'A filtered page may be short, or empty, and still have one. ' +
    'Entries that retention has moved to the archive are read from there; a page may then be shorter than `limit`.',
  ...guard({ roles: ['viewer'], scoped: true }),
  request: {
    params: scopePath,
    query: z.object({
      after: seq.default(0).describe('Entries with a greater `seq`.'),
      before: seq.optional().describe('Entries with a smaller `seq`.'),
      trace_id: traceId.optional().describe('Entries of this trace.'),
      kind: z
        .string()
        .min(1)
        .max(1000)
        .optional()
        .describe('Entries of these kinds, separated by commas, such as `skill-decided,skill-applied`.'),
      limit: pageLimit(limits.log_page),
    }),
  },
  responses: { 200: json(paged(logEntry), 'A page.'), ...problems(400, 503) },
})

const archive = route('get /v1/scopes/{scope}/archive', 'listArchivedFiles', "List the archive's files of a scope, oldest first", {
  description: 'The manifest of what retention has moved to the archive. docs/archive.md describes the files.',
  ...guard({ roles: ['viewer'], scoped: true }),
  request: { params: scopePath, query: z.object({ limit: pageLimit(1000), cursor: z.coerce.number<string>().int().min(0).default(0) }) },
  responses: { 200: json(paged(archivedFile), 'A page.'), ...problems(400) },
})

const event = route('get /v1/scopes/{scope}/events/{id}', 'getScopeEvent', 'Get one event from the scope', {
  ...guard({ roles: ['viewer'], scoped: true }),
  request: { params: scopePath.extend({ id: z.string().min(1).max(128) }) },
  responses: { 200: json(eventRecord, 'The event, its status and outcome.'), ...problems(400, 404, 503) },
})

const cancel = route('post /v1/scopes/{scope}/cancel', 'cancelTurn', 'Stop the turn in flight', {
  description: 'Durable: the turn stays cancelled across a restart. Its events end as `cancelled`. The body is optional.',
  ...guard({ roles: ['operator'], scoped: true, body: 'optional' }),
  request: {
    params: scopePath,
    body: jsonRequest(z.strictObject({ reason: z.string().min(1).max(1000).default('cancelled by an operator') }), {
      reason: 'it went astray',
    }),
  },
  responses: {
    200: json(
      z.object({ cancelled: z.boolean(), turn_id: z.string().nullable(), events: z.int() }),
      'The cancelled turn, if one was in flight.',
    ),
    ...problems(400, 413, 415),
  },
})

const askModel = route('post /v1/scopes/{scope}/ask-model', 'askModelNow', 'Have a scope that waits for the model ask it now', {
  description: 'The scope would ask by itself at `waiting_for_model.until`. The log says who asked. Without an outage nothing happens.',
  ...guard({ roles: ['operator'], scoped: true }),
  request: { params: scopePath },
  responses: {
    200: json(
      z.object({
        asked: z.boolean().describe('Whether the scope waited for the model.'),
        tries: z.int().nullable().describe('Turns that had failed to reach the model; null if it did not wait.'),
        waiting_for_model: modelWait.nullable().describe('Until the answer comes, it still waits.'),
      }),
      'It asks now, if it waited.',
    ),
    ...problems(400),
  },
})

export const scopeRoutes = resource()
  .openapi(list, async (c) => {
    const { limit, cursor, ...query } = c.req.valid('query')
    const rows = await listScopes(storeOf(c.env), { ...query, patterns: c.var.principal.scopes, after: cursor, limit: limit + 1 })
    const items = rows.slice(0, limit)
    return c.json({ items, next_cursor: rows.length > limit ? (items.at(-1)?.scope ?? null) : null }, 200)
  })
  .openapi(state, async (c) => c.json(await c.env.SCOPE.getByName(c.var.scope).state(), 200))
  .openapi(configure, async (c) => {
    const { scope, principal } = c.var
    const patch = refuseInvalid({ target: 'json', ...settingsPatch.safeParse(await c.req.json()) })
    refuseGlobalKeys(principal, patch)
    refuseSecrets(c.env, { principal, scope }, patch)
    if (patch.market?.opening_grant !== undefined && !isAdminOfAll(principal))
      throw forbidden(
        'Only an admin of all scopes sets market.opening_grant, which mints scrip. Transfer from an account of yours instead.',
      )
    const changed = await c.env.SCOPE.getByName(scope).configure(
      patch,
      principal.name,
      principal.key_id,
      traceContextOf(c.req.header('traceparent')),
    )
    if (!changed.ok) throw invalid(changed.detail)
    return c.json({ scope, settings: changed.settings }, 200)
  })
  .openapi(schema, (c) => c.json(settingsSchema(), 200))
  .openapi(context, async (c) => {
    const { limit, cursor, at } = c.req.valid('query')
    const stub = c.env.SCOPE.getByName(c.var.scope)
    if (at === undefined) return c.json(await stub.context(limit, cursor), 200)
    const past = await stub.contextAt(at, limit, cursor)
    if (past.ok) return c.json(past.context, 200)
    const detail = `The context of ${c.var.scope} at ${at} cannot be rebuilt: ${past.detail}.`
    throw past.reason === 'unavailable' ? unavailable(detail) : notFound(detail)
  })
  .openapi(log, async (c) => {
    const { after, before, limit, kind, trace_id } = c.req.valid('query')
    const only = { trace_id, kinds: kind?.split(',') }
    const { entries, next, unavailable: why } = await c.env.SCOPE.getByName(c.var.scope).readLog(after, limit, before, only)
    if (why !== undefined) throw unavailable(`Part of the log is in the archive: ${why}.`)
    // Entries are JSON text already, up to 1000 of them.
    return jsonText<LogPage>(`{"items":[${entries.join(',')}],"next_cursor":${next === null ? 'null' : `"${next}"`}}`)
  })
  .openapi(archive, async (c) => {
    const { limit, cursor } = c.req.valid('query')
    const files = await c.env.SCOPE.getByName(c.var.scope).archivedFiles(cursor, limit + 1)
    const items = files.slice(0, limit)
    return c.json({ items, next_cursor: files.length > limit ? String(items.at(-1)?.number) : null }, 200)
  })
  .openapi(event, async (c) => {
    const { scope, id } = c.req.valid('param')
    const record = await recordIn(c.env, scope, id)
    if (!record) throw notFound(`The scope ${scope} has no event ${id}.`)
    return c.json(record, 200)
  })
  .openapi(cancel, async (c) => {
    const { scope, principal } = c.var
    const traceparent = validTraceparent(c.req.header('traceparent')) ?? undefined
    return c.json(await c.env.SCOPE.getByName(scope).cancel(c.req.valid('json').reason, principal.name, traceparent), 200)
  })
  .openapi(askModel, async (c) => {
    const { scope, principal } = c.var
    const asked = await c.env.SCOPE.getByName(scope).askModel(principal.name, traceContextOf(c.req.header('traceparent')))
    return c.json({ asked: asked.tries !== null, ...asked }, 200)
  })

const settingsSchema = (): Record<string, unknown> => {
  const { properties = {}, ...plain } = plainSchema(fullSettings)
  const standard: Readonly<Record<string, unknown>> = defaultSettings
  const withDefault = Object.entries(properties).map(([name, of]) => [name, name in standard ? { ...of, default: standard[name] } : of])
  return { ...plain, properties: Object.fromEntries(withDefault) }
}

type LogPage = { items: z.infer<typeof logEntry>[]; next_cursor: string | null }

/** A secret in a tool is one in the hands of who may change the tool. */
function refuseSecrets(env: Env, { principal, scope }: { principal: Principal; scope: string }, patch: SettingsPatch): void {
  for (const name of secretsNamedIn(patch)) {
    const refusal = useRefusal(env, name, { scope, key: principal })
    if (refusal !== null) throw forbidden(`The settings name a secret: ${refusal}.`)
  }
}

/** A tool with a deployment-wide key affects scopes of other keys. */
function refuseGlobalKeys(principal: Principal, { http_tools }: SettingsPatch): void {
  const found = http_tools?.find(({ idempotence_key }) => idempotence_key !== undefined && isGlobalKey(idempotence_key))
  if (!found || coversScope(principal, '*')) return
  throw forbidden(`The deployment-wide idempotency key of ${found.name} can be set only by a key that covers all scopes.`)
}
