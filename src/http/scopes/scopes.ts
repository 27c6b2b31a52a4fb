import type { Context } from 'hono'
import { defaultSettings, settings as fullSettings, type SettingsPatch } from '../../contract/settings/settings.ts'
import { listScopes } from '../../store/scopes.ts'
import { jsonText, resource, serve } from '../describe/operation.ts'
import { findInScope } from '../../contract/operations/events.ts'
import {
  archive,
  askModel,
  cancel,
  chain,
  configure,
  context,
  list,
  log,
  settingsSchema as schema,
  state,
  tools,
} from '../../contract/operations/scopes.ts'
import type { AuthEnv } from '../auth/middleware.ts'
import { forbidden, invalid, notFound, unavailable } from '../problems/refusals.ts'
import { coversScope, isAdminOfAll, type Principal } from '../../contract/principal.ts'
import type { Env } from '../../env.ts'
import { isGlobalKey } from '../../tools/define-tool.ts'
import { secretsNamedIn, useRefusal } from '../../tools/tool-secrets.ts'
import { plainSchema } from '../../contract/plain-schema.ts'
import { recordIn } from './record.ts'
import { traceContextOf, validTraceparent } from '../../events/traceparent.ts'
import { storeOf } from '../../store/store.ts'

const stubOf = (c: Context<AuthEnv>) => c.env.SCOPE.getByName(c.var.scope)

export const scopeRoutes = resource().openapiRoutes([
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
  serve(chain, (c) => stubOf(c).chain()),
  serve(tools, async (c) => ({ items: await stubOf(c).tools(), next_cursor: null })),
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
  serve(configure, async (c, { body: patch }) => {
    const { scope, principal } = c.var
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
    return { scope, settings: changed.settings }
  }),
  serve(log, async (c, { query: { after, before, limit, kind, trace_id } }) => {
    const only = { trace_id, kinds: kind?.split(',') }
    const { entries, next, unavailable: why } = await c.env.SCOPE.getByName(c.var.scope).readLog(after, limit, before, only)
    if (why !== undefined) throw unavailable(`Part of the log is in the archive: ${why}.`)
    // Entries are JSON text already, up to 1000 of them.
    return jsonText(`{"items":[${entries.join(',')}],"next_cursor":${next === null ? 'null' : `"${next}"`}}`)
  }),
  serve(findInScope, async (c, { params: { scope, id } }) => {
    const record = await recordIn(c.env, scope, id)
    if (!record) throw notFound(`The scope ${scope} has no event ${id}.`)
    return record
  }),
])

const settingsSchema = (): Record<string, unknown> => {
  const { properties = {}, ...plain } = plainSchema(fullSettings)
  const standard: Readonly<Record<string, unknown>> = defaultSettings
  const withDefault = Object.entries(properties).map(([name, of]) => [name, name in standard ? { ...of, default: standard[name] } : of])
  return { ...plain, properties: Object.fromEntries(withDefault) }
}

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
