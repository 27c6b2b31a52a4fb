import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { withIso } from '../../base/time.ts'
import { warn } from '../../base/warn.ts'
import { receipts } from '../../contract/event-record.ts'
import { coversScope, type Principal } from '../../contract/principal.ts'
import { hookKey } from '../../contract/reports/notice.ts'
import { hasPlaces, hook, hookName, type NewHook, newHook, reachOf, secretOfHook } from '../../contract/settings/hook.ts'
import { fixedType, mapDelivery, mappingError, scopeOf, unsignedIn } from '../../events/hook-mapping.ts'
import { verifyHook } from '../../events/hook-signature.ts'
import type { Env } from '../../env.ts'
import { addCounts, countsOf, deleteHook, findHook, listHooks, putHook, type HookRow } from '../../store/access/hooks.ts'
import { storeOf } from '../../store/store.ts'
import { createKeyCache, type KeyCache } from '../auth/key-cache.ts'
import { addressLimited, type AuthEnv } from '../auth/middleware.ts'
import { eventRules, readEvent, withTypesOf } from '../body/parse-events.ts'
import { readBody } from '../body/read-body.ts'
import { guard, json, jsonRequest, open, problemJson, problems, resource, routes } from '../describe/describe.ts'
import { paged, pageLimit } from '../describe/paging.ts'
import { Problem, problem } from '../../contract/problem.ts'
import { isForScope, useRefusal } from '../../tools/tool-secrets.ts'
import { demandCoverage, forbidden, inboxFull, invalid, notFound, refusal, unavailable } from '../problems/refusals.ts'
import { parseJson } from '../../base/parse-json.ts'

const route = routes('Hooks')
const named = z.object({ name: hookName })

const put = route('put /v1/hooks/{name}', 'putHook', 'Create or replace a hook', {
  description:
    'Deliveries to `POST /v1/hooks/{name}` become events of its scope. The secret that verifies them is the deployment secret `REFLEX_HOOK_NAME`, in upper case with `_` for `-`. ' +
    'Takes effect immediately at this location, and everywhere within 30 s. See docs/webhooks.md.',
  ...guard({ roles: ['admin'], body: 'json' }),
  request: {
    params: named,
    body: jsonRequest(newHook, { scope: 'ci', scheme: 'github', when: 'has(body.commits)' }),
  },
  responses: { 200: json(hook, 'The hook.'), ...problems(400, 413, 415) },
})
const list = route('get /v1/hooks', 'listHooks', 'List hooks, by name', {
  ...guard({ roles: ['admin'] }),
  request: { query: z.object({ limit: pageLimit(100), cursor: z.string().max(32).default('') }) },
  responses: { 200: json(paged(hook), 'A page, with the numbers of deliveries by result.'), ...problems(400) },
})
const find = route('get /v1/hooks/{name}', 'getHook', 'Get a hook', {
  ...guard({ roles: ['admin'] }),
  request: { params: named },
  responses: { 200: json(hook, 'The hook.'), ...problems(400, 404) },
})
const remove = route('delete /v1/hooks/{name}', 'deleteHook', 'Delete a hook', {
  ...guard({ roles: ['admin'] }),
  request: { params: named },
  responses: { 204: { description: 'Deleted.' }, ...problems(400, 404) },
})

export const hookRoutes = resource()
  .openapi(put, async (c) => {
    const { name } = c.req.valid('param')
    const given = c.req.valid('json')
    const { scope: named, scheme, ...own } = given
    const scope = reachOf(named)
    demandCoverage(c.var.principal, [{ scope }])
    const before = await findHook(storeOf(c.env), name)
    if (before) demandCoverage(c.var.principal, [before])
    const refusal = useRefusal(c.env, secretOfHook(name), { scope, key: c.var.principal })
    // A hook that stands keeps its secret and its scope.
    if (refusal !== null && before?.scope !== scope) throw forbidden(`The hook takes a secret: ${refusal}.`)
    const mistake = mappingError(given)
    if (mistake !== null) throw invalid(`The mapping is invalid: ${mistake}.`)
    const warnings = [...(await typeWarnings(c, given)), ...headerWarnings(given)]
    const mapping = hasPlaces(named) ? { ...own, scope: named } : own
    const row = { name, scope, scheme, mapping, created_at: Date.now() }
    await putHook(storeOf(c.env), row)
    cache?.forget(name)
    return c.json({ ...(await present(c.env, row)), ...(warnings.length > 0 && { warnings }) }, 200)
  })
  .openapi(list, async (c) => {
    const { limit, cursor } = c.req.valid('query')
    const rows = await listHooks(storeOf(c.env), { patterns: c.var.principal.scopes, after: cursor, limit: limit + 1 })
    const items = await presentAll(c.env, rows.slice(0, limit))
    return c.json({ items, next_cursor: rows.length > limit ? (items.at(-1)?.name ?? null) : null }, 200)
  })
  .openapi(find, async (c) => c.json(await present(c.env, await covered(c.env, c.var.principal, c.req.valid('param').name)), 200))
  .openapi(remove, async (c) => {
    const { name } = await covered(c.env, c.var.principal, c.req.valid('param').name)
    await deleteHook(storeOf(c.env), name)
    cache?.forget(name)
    return c.body(null, 204)
  })

/** Refuses a type of events that the hook's scope does not know. */
async function typeWarnings(c: Context<AuthEnv>, given: NewHook): Promise<string[]> {
  const type = fixedType(given)
  const rules = eventRules(c)
  if (type === null || rules.types.includes(type)) return []
  if (hasPlaces(given.scope))
    return [`event.type: the deployment has no type ${type}: each scope that a delivery reaches has to declare it.`]
  const { declared } = await withTypesOf(given.scope, [type], rules, c.env)
  if (declared?.has(type) === true) return []
  const known = [...rules.types, ...(declared?.keys() ?? [])].join(', ')
  throw refusal(
    'unknown-type',
    `event.type: the scope ${given.scope} has no type ${type}. It has: ${known}. Declare it in the setting event_types of the scope first.`,
  )
}

const headerWarnings = (given: NewHook): string[] =>
  unsignedIn(given, given.scheme).map(
    ({ place, header }) =>
      `${place}: the signature does not cover the header ${header}. Whoever passes a delivery on can change it: decide by the body where you can.`,
  )

const receive = route('post /v1/hooks/{name}', 'receiveHook', 'Receive a delivery', {
  description:
    'For the systems that send webhooks: it needs no key, but the signature of its scheme. A repeated delivery is a duplicate, with the receipts of the first. ' +
    'A refused delivery changes nothing. A delivery that the hook ignores has no receipt.',
  ...open,
  middleware: [addressLimited],
  request: { params: named },
  responses: {
    202: json(receipts, 'The receipts of its events.'),
    ...Object.fromEntries(
      [400, 401, 404, 413, 415, 429, 503].map((status) => [status, problemJson(problem, 'The delivery was refused.')] as const),
    ),
  },
})

/** Registered before the routes that need a key. */
export const hookDeliveryRoutes = resource().openapi(receive, async (c) => {
  const { name } = c.req.valid('param')
  cache ??= createKeyCache((id) => findHook(storeOf(c.env), id), Date.now)
  const row = await cache.find(name).catch((): never => {
    throw unavailable('The hooks of this deployment could not be read. Send the delivery again.')
  })
  if (!row) throw notFound(`There is no hook ${name}.`)
  const count = (result: string, number = 1) => counted(c, { hook: name, result, count: number })
  try {
    const events = await take(c, row, count)
    const accepted = events.filter(({ status }) => status === 'accepted').length
    if (accepted > 0) count('accepted', accepted)
    if (events.length > accepted) count('duplicate', events.length - accepted)
    return c.json({ accepted, events }, 202)
  } catch (error) {
    count(error instanceof Problem ? (error.type.split(':').at(-1) ?? 'failed') : 'failed')
    throw error
  }
})

const FORM_TYPE = 'application/x-www-form-urlencoded'
const FORM = new RegExp(`^${FORM_TYPE} *(?:;|$)`, 'i')

/** A form as an object of texts. GitHub's has the JSON of the delivery in its only field. */
function parseForm(body: string): ReturnType<typeof parseJson> {
  const fields = Map.groupBy(new URLSearchParams(body), ([name]) => name)
  const values = Array.from(fields, ([name, pairs]) => [name, pairs.map(([, value]) => value)] as const)
  const [[name, [payload, ...more]] = ['', []]] = values
  if (fields.size === 1 && name === 'payload' && payload !== undefined && more.length === 0) return parseJson(payload)
  return { ok: true, value: Object.fromEntries(values.map(([field, all]) => [field, all.length === 1 ? all[0] : all])) }
}

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json *(?:;|$)/i

/**
 * Reads a body that is JSON as JSON: nobody signs the Content-Type, and as a form the same text
 * says something else. Only a hook that expects forms reads one.
 */
function parseDelivery(body: string, type: string, form: boolean): unknown {
  const json = parseJson(body)
  if (json.ok) return json.value
  const isForm = FORM.test(type)
  if (!isForm && !JSON_TYPE.test(type))
    throw refusal('unsupported-media-type', 'A delivery is JSON or a form.', { headers: { Accept: `application/json, ${FORM_TYPE}` } })
  if (isForm && !form) throw refusal('malformed-body', 'The body is a form, and this hook takes JSON: set `form` of the hook to true.')
  const parsed = isForm ? parseForm(body) : json
  if (!parsed.ok) throw refusal('malformed-body', `The body is not JSON: ${parsed.message}.`)
  return parsed.value
}

/** Verifies a delivery and sends its events to the scope, all or none. */
async function take(c: Context<AuthEnv>, row: HookRow, count: (result: string) => void) {
  const { name, scheme, mapping } = row
  const secret = c.env[secretOfHook(name)]
  if (secret === undefined || secret === '') throw unavailable(`The deployment has no secret for the hook ${name}.`)
  const body = await readBody(c.req.raw)
  const { headers } = c.req.raw
  const verified = await verifyHook(scheme, { secret, headers, body, now: Date.now() })
  if (!verified.ok && verified.reason === 'misconfigured') throw unavailable(verified.detail)
  if (!verified.ok) throw refusal(verified.reason === 'stale' ? 'stale-delivery' : 'bad-signature', verified.detail)
  const value = parseDelivery(body, headers.get('Content-Type') ?? '', mapping.form === true)
  const mapped = mapDelivery(mapping, { name, delivery: verified.delivery, body: value, headers })
  if (!mapped.ok) throw invalid(mapped.detail)
  if (mapped.events.length === 0) {
    count('ignored')
    return []
  }
  const found = mapping.scope === undefined ? { ok: true as const, scope: row.scope } : scopeOf(mapping.scope, value)
  if (!found.ok) throw invalid(found.detail)
  const { scope } = found
  if (!isForScope(c.env, secretOfHook(name), scope))
    throw unavailable(`The secret of the hook ${name} is not for the scope ${scope}: see ${secretOfHook(name)}_SCOPES of the deployment.`)
  c.set('principal', { key_id: hookKey(name, verified.delivery), name: `hook:${name}`, roles: ['publisher'], scopes: [scope] })
  const types = mapped.events.map((event) => event['type'])
  const rules = await withTypesOf(scope, types, eventRules(c, scope), c.env)
  const events = mapped.events.map((event) => readEvent(event, rules))
  const answer = await c.env.SCOPE.getByName(scope).accept(events, 'http')
  if (!answer.ok) throw inboxFull(scope, answer)
  return answer.receipts
}

let cache: KeyCache<HookRow> | undefined

const FLUSH_MS = 500
const waiting = new Map<string, { hook: string; result: string; count: number }>()

/** Adds up the counts of an isolate, so that a flood of forgeries is few writes. */
function counted(c: Context<AuthEnv>, { hook: name, result, count }: { hook: string; result: string; count: number }): void {
  const is_first = waiting.size === 0
  const key = `${name} ${result}`
  waiting.set(key, { hook: name, result, count: (waiting.get(key)?.count ?? 0) + count })
  if (is_first) c.executionCtx.waitUntil(flushCounts(storeOf(c.env)))
}

async function flushCounts(db: D1Database): Promise<void> {
  await scheduler.wait(FLUSH_MS)
  const counts = Array.from(waiting.values())
  waiting.clear()
  await addCounts(db, counts).catch((error: unknown) => warn({ message: 'failed to count deliveries of hooks', error }))
}

async function covered(env: Env, principal: Principal, name: string): Promise<HookRow> {
  const row = await findHook(storeOf(env), name)
  if (!row || !coversScope(principal, row.scope)) throw notFound(`There is no hook ${name} in the scopes of this key.`)
  return row
}

const present = async (env: Env, row: HookRow) => (await presentAll(env, [row]))[0] as z.infer<typeof hook>

async function presentAll(env: Env, rows: readonly HookRow[]): Promise<z.infer<typeof hook>[]> {
  const counts = await countsOf(
    storeOf(env),
    rows.map(({ name }) => name),
  )
  return rows.map(({ mapping, ...row }) => {
    const own = counts.filter(({ hook: name }) => name === row.name).map(({ result, count }) => [result, count] as const)
    const secret = secretOfHook(row.name)
    return { ...withIso(row, ['created_at']), ...mapping, secret, secret_set: !!env[secret], counts: Object.fromEntries(own) }
  })
}
