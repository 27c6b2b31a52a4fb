import type { Context } from 'hono'
import { z } from '@hono/zod-openapi'
import { eventRecord } from '../../contract/event-record.ts'
import { limits } from '../../base/limits.ts'
import { defaultSettings, settings as fullSettings, settingsPatch, type SettingsPatch } from '../../contract/settings/settings.ts'
import { listScopes } from '../../store/scopes.ts'
import { guard, json, jsonRequest, jsonText, problems, resource, routes, scopePath, traceId } from '../describe/describe.ts'
import { archive, askModel, cancel, context, list, settingsSchema as schema, state } from '../../contract/operations/scopes.ts'
import { paged, pageLimit } from '../../contract/paging.ts'
import type { AuthEnv } from '../auth/middleware.ts'
import { serve } from '../describe/operation.ts'
import { forbidden, invalid, notFound, refuseInvalid, unavailable } from '../problems/refusals.ts'
import { coversScope, type Principal } from '../../contract/principal.ts'
import type { Env } from '../../env.ts'
import { isGlobalKey } from '../../tools/tool-keys.ts'
import { secretsNamedIn, useRefusal } from '../../tools/tool-secrets.ts'
import { described, plainSchema } from '../body/plain-schema.ts'
import { settings } from '../../contract/scope.ts'
import { logEntry } from '../../contract/log-entry.ts'
import { isAdminOfAll } from '../../features/market/http/account-access.ts'
import { recordIn } from './record.ts'
import { traceContextOf, validTraceparent } from '../../events/traceparent.ts'
import { storeOf } from '../../store/store.ts'

const route = routes('Scopes')

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

const seq = z.coerce.number<string>().int().min(0)
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

const event = route('get /v1/scopes/{scope}/events/{id}', 'getScopeEvent', 'Get one event from the scope', {
  ...guard({ roles: ['viewer'], scoped: true }),
  request: { params: scopePath.extend({ id: z.string().min(1).max(128) }) },
  responses: { 200: json(eventRecord, 'The event, its status and outcome.'), ...problems(400, 404, 503) },
})

const stubOf = (c: Context<AuthEnv>) => c.env.SCOPE.getByName(c.var.scope)

export const scopeRoutes = resource()
  .openapiRoutes([
    serve(list, async (c, { query: { limit, cursor, ...query } }) => {
      const rows = await listScopes(storeOf(c.env), { ...query, patterns: c.var.principal.scopes, after: cursor, limit: limit + 1 })
      const items = rows.slice(0, limit)
      return { items, next_cursor: rows.length > limit ? (items.at(-1)?.scope ?? null) : null }
    }),
    serve(state, (c) => stubOf(c).state()),
    serve(schema, () => settingsSchema()),
    serve(context, async (c, { query: { limit, cursor, at } }) => {
      if (at === undefined) return stubOf(c).context(limit, cursor)
      const past = await stubOf(c).contextAt(at, limit, cursor)
      if (past.ok) return past.context
      const detail = `The context of ${c.var.scope} at ${at} cannot be rebuilt: ${past.detail}.`
      throw past.reason === 'unavailable' ? unavailable(detail) : notFound(detail)
    }),
    serve(archive, async (c, { query: { limit, cursor } }) => {
      const files = await stubOf(c).archivedFiles(cursor, limit + 1)
      const items = files.slice(0, limit)
      return { items, next_cursor: files.length > limit ? String(items.at(-1)?.number) : null }
    }),
    serve(cancel, (c, { body: { reason } }) =>
      stubOf(c).cancel(reason, c.var.principal.name, validTraceparent(c.req.header('traceparent')) ?? undefined),
    ),
    serve(askModel, async (c) => {
      const asked = await stubOf(c).askModel(c.var.principal.name, traceContextOf(c.req.header('traceparent')))
      return { asked: asked.tries !== null, ...asked }
    }),
  ])
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
  .openapi(log, async (c) => {
    const { after, before, limit, kind, trace_id } = c.req.valid('query')
    const only = { trace_id, kinds: kind?.split(',') }
    const { entries, next, unavailable: why } = await c.env.SCOPE.getByName(c.var.scope).readLog(after, limit, before, only)
    if (why !== undefined) throw unavailable(`Part of the log is in the archive: ${why}.`)
    // Entries are JSON text already, up to 1000 of them.
    return jsonText<LogPage>(`{"items":[${entries.join(',')}],"next_cursor":${next === null ? 'null' : `"${next}"`}}`)
  })
  .openapi(event, async (c) => {
    const { scope, id } = c.req.valid('param')
    const record = await recordIn(c.env, scope, id)
    if (!record) throw notFound(`The scope ${scope} has no event ${id}.`)
    return c.json(record, 200)
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
