import type { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { withIso } from '../../../base/time.ts'
import { warn } from '../../../base/warn.ts'
import { find, list, put, receive, remove } from '../operations/hooks.ts'
import { coversScope, type Principal } from '../../../contract/principal.ts'
import { hookKey } from '../../notices/contract/notice.ts'
import { hasPlaces, type hook, isTenantAddress, nameOfHook, type NewHook, reachOf, secretOfHook } from '../contract/hook.ts'
import { randomHex } from '../../../core/event.ts'
import { fixedType, mapDelivery, mappingError, scopeOf, unsignedIn } from '../events/hook-mapping.ts'
import { verifyHook } from '../events/hook-signature.ts'
import type { Env } from '../../../env.ts'
import { addCounts, addTenantHook, countsOf, deleteHook, findHook, hooksNamed, listHooks, putHook, type HookRow } from '../store/hooks.ts'
import { storeOf } from '../../../store/store.ts'
import { createKeyCache, type KeyCache } from '../../../http/auth/key-cache.ts'
import { addressLimited, type AuthEnv, demandCoverage } from '../../../http/auth/middleware.ts'
import { eventRules, readEvent, withTypesOf, readBody } from '../../../http/body/body.ts'
import { resource, serve } from '../../../http/describe/operation.ts'
import { Problem } from '../../../contract/problem.ts'
import { isForScope, useRefusal } from '../../../tools/tool-secrets.ts'
import { conflict, forbidden, inboxFull, invalid, notFound, refusal, unavailable } from '../../../http/problems/refusals.ts'
import { parseJson } from '../../../base/check-json.ts'
import { isJsonFields } from '../../../base/json.ts'

export const hookRoutes = resource().openapiRoutes([
  serve(put, async (c, { params: { name }, body: given }) => {
    const { scope: named, scheme, ...own } = given
    const scope = reachOf(named)
    demandCoverage(c.var.principal, [{ scope }])
    const mistake = mappingError(given)
    if (mistake !== null) throw invalid(`The mapping is invalid: ${mistake}.`)
    const mapping = hasPlaces(named) ? { ...own, scope: named } : own
    const { address, before, others } = await placeFor(c, name, scope)
    const row = { address, scope, scheme, mapping, created_at: Date.now() }
    const secret = secretOfHook(row)
    const refusal = useRefusal(c.env, secret, { scope, key: c.var.principal })
    // A hook that stands keeps its secret and its scope.
    const keeps = before?.scope === scope && secretOfHook(before) === secret
    if (refusal !== null && !keeps) throw forbidden(`The hook takes a secret: ${refusal}.`)
    const warnings = [...(await typeWarnings(c, given)), ...headerWarnings(given), ...namesakeWarnings(others)]
    if (before || !isTenantAddress(address)) await putHook(storeOf(c.env), row)
    else if (!(await addTenantHook(storeOf(c.env), name, row)))
      throw conflict('changed', `Somebody else has just made the hook ${name} of ${scope}. Send the request again to replace it.`)
    cache?.forget(address)
    return { ...(await present(c.env, row)), ...(warnings.length > 0 && { warnings }) }
  }),
  serve(list, async (c, { query: { limit, cursor } }) => {
    const rows = await listHooks(storeOf(c.env), { patterns: c.var.principal.scopes, after: cursor, limit: limit + 1 })
    const items = await presentAll(c.env, rows.slice(0, limit))
    return { items, next_cursor: rows.length > limit ? (items.at(-1)?.address ?? null) : null }
  }),
  serve(find, async (c, { params: { name } }) => present(c.env, await hookFor(c, name))),
  serve(remove, async (c, { params: { name } }) => {
    const { address } = await hookFor(c, name)
    await deleteHook(storeOf(c.env), address)
    cache?.forget(address)
    return null
  }),
])

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

/** Registered before the routes that need a key. */
export const hookDeliveryRoutes = resource().openapiRoutes([
  serve(receive, (c, { params: { name } }) => delivered(c, name), addressLimited),
])

async function delivered(c: Context<AuthEnv>, address: string) {
  cache ??= createKeyCache((id) => findHook(storeOf(c.env), id), Date.now)
  const row = await cache.find(address).catch((): never => {
    throw unavailable('The hooks of this deployment could not be read. Send the delivery again.')
  })
  if (!row) throw notFound(`There is no hook ${address}.`)
  const count = (result: string, number = 1) => counted(c, { hook: address, result, count: number })
  try {
    const taken = await take(c, row, count)
    if (taken.challenge !== undefined) return [200, { challenge: taken.challenge }] as const
    const { events } = taken
    const accepted = events.filter(({ status }) => status === 'accepted').length
    if (accepted > 0) count('accepted', accepted)
    if (events.length > accepted) count('duplicate', events.length - accepted)
    return [202, { accepted, events }] as const
  } catch (error) {
    count(error instanceof Problem ? (error.type.split(':').at(-1) ?? 'failed') : 'failed')
    throw error
  }
}

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
  const { address, scheme, mapping } = row
  const name = nameOfHook(address)
  const variable = secretOfHook(row)
  const secret = c.env[variable]
  if (secret === undefined || secret === '') throw unavailable(`The deployment has no secret for the hook ${name}.`)
  const body = await readBody(c.req.raw)
  const { headers } = c.req.raw
  const verified = await verifyHook(scheme, { secret, headers, body, now: Date.now() })
  if (!verified.ok && verified.reason === 'misconfigured') throw unavailable(verified.detail)
  if (!verified.ok) throw refusal(verified.reason === 'stale' ? 'stale-delivery' : 'bad-signature', verified.detail)
  const value = parseDelivery(body, headers.get('Content-Type') ?? '', mapping.form === true)
  const challenge = row.scheme === 'slack' ? challengeIn(value) : null
  if (challenge !== null) return { challenge }
  const mapped = mapDelivery(mapping, { address, delivery: verified.delivery, body: value, headers })
  if (!mapped.ok) throw invalid(mapped.detail)
  if (mapped.events.length === 0) {
    count('ignored')
    return { events: [] }
  }
  const found = mapping.scope === undefined ? { ok: true as const, scope: row.scope } : scopeOf(mapping.scope, value)
  if (!found.ok) throw invalid(found.detail)
  const { scope } = found
  if (!isForScope(c.env, variable, scope))
    throw unavailable(`The secret of the hook ${name} is not for the scope ${scope}: see ${variable}_SCOPES of the deployment.`)
  c.set('principal', { key_id: hookKey(address, verified.delivery), name: `hook:${name}`, roles: ['publisher'], scopes: [scope] })
  const types = mapped.events.map((event) => event['type'])
  const rules = await withTypesOf(scope, types, eventRules(c, scope), c.env)
  const events = mapped.events.map((event) => readEvent(event, rules))
  const answer = await c.env.SCOPE.getByName(scope).accept(events, 'http')
  if (!answer.ok) throw inboxFull(scope, answer)
  return { events: answer.receipts }
}

/** Slack asks an address that is entered to prove that it can read what Slack signs. */
function challengeIn(body: unknown): string | null {
  const asked = isJsonFields(body) && body['type'] === 'url_verification' ? body['challenge'] : null
  return typeof asked === 'string' ? asked : null
}

let cache: KeyCache<HookRow> | undefined

const FLUSH_MS = 500
const waiting = new Map<string, { hook: string; result: string; count: number }>()

/** Adds up the counts of an isolate, so that a flood of forgeries is few writes. */
function counted(c: Context<AuthEnv>, { hook: address, result, count }: { hook: string; result: string; count: number }): void {
  const is_first = waiting.size === 0
  const key = `${address} ${result}`
  waiting.set(key, { hook: address, result, count: (waiting.get(key)?.count ?? 0) + count })
  if (is_first) c.executionCtx.waitUntil(flushCounts(storeOf(c.env)))
}

async function flushCounts(db: D1Database): Promise<void> {
  await scheduler.wait(FLUSH_MS)
  const counts = Array.from(waiting.values())
  waiting.clear()
  await addCounts(db, counts).catch((error: unknown) => warn({ message: 'failed to count deliveries of hooks', error }))
}

/** The hook at this address, if the key covers its scope. */
async function coveredAt(c: Context<AuthEnv>, address: string): Promise<HookRow | null> {
  const row = await findHook(storeOf(c.env), address)
  return row && coversScope(c.var.principal, row.scope) ? row : null
}

/** Namesakes that a key has to tell apart. */
const MOST_NAMESAKES = 10

/** A key of all scopes sees all tenants: it goes by addresses. */
const goesByAddress = ({ principal }: { principal: Principal }, name: string): boolean =>
  isTenantAddress(name) || coversScope(principal, '*')

/** The hook at an address, else the only one of a name in the scopes of the key. */
async function hookFor(c: Context<AuthEnv>, name: string): Promise<HookRow> {
  const exact = await coveredAt(c, name)
  if (exact) return exact
  const query = { name, patterns: c.var.principal.scopes, limit: MOST_NAMESAKES }
  const [found, ...others] = goesByAddress(c.var, name) ? [] : await hooksNamed(storeOf(c.env), query)
  if (!found) throw notFound(`There is no hook ${name} in the scopes of this key.`)
  if (others.length === 0) return found
  const all = [found, ...others].map(({ address, scope }) => `${address} (${scope})`).join(', ')
  throw conflict('ambiguous-name', `The scopes of this key have several hooks ${name}: ${all}. Give the address of one.`)
}

type Place = { address: string; before: HookRow | null; others: HookRow[] }

/** The address of a hook that is set, and the hook that is there now: a scope has one of a name. */
async function placeFor(c: Context<AuthEnv>, name: string, scope: string): Promise<Place> {
  const exact = await coveredAt(c, name)
  if (exact) return { address: name, before: exact, others: [] }
  if (isTenantAddress(name)) throw notFound(`There is no hook ${name} in the scopes of this key: create one by its name.`)
  if (goesByAddress(c.var, name)) return { address: name, before: null, others: [] }
  const named = await hooksNamed(storeOf(c.env), { name, scope, patterns: c.var.principal.scopes, limit: MOST_NAMESAKES })
  const before = named.find((row) => row.scope === scope) ?? null
  const address = before?.address ?? `${name}.${randomHex(ADDRESS_BYTES)}`
  return { address, before, others: named.filter((row) => row !== before) }
}
const ADDRESS_BYTES = 6

const namesakeWarnings = (others: readonly HookRow[]): string[] =>
  others.map(({ address, scope }) => `The hook ${address} of ${scope} has the same name: PUT to its address to change it.`)

const present = async (env: Env, row: HookRow) => (await presentAll(env, [row]))[0] as z.infer<typeof hook>

async function presentAll(env: Env, rows: readonly HookRow[]): Promise<z.infer<typeof hook>[]> {
  const counts = await countsOf(
    storeOf(env),
    rows.map(({ address }) => address),
  )
  return rows.map(({ mapping, ...row }) => {
    const { address } = row
    const own = counts.filter(({ hook }) => hook === address).map(({ result, count }) => [result, count] as const)
    const secret = secretOfHook({ address, mapping })
    const shown = { ...withIso(row, ['created_at']), name: nameOfHook(address), ...mapping }
    return { ...shown, secret, secret_set: !!env[secret], counts: Object.fromEntries(own) }
  })
}
