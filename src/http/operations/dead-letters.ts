import type { Context } from 'hono'
import { jsonValue } from '../../base/json.ts'
import { withIso } from '../../base/time.ts'
import { discard, find, groups, list, retry, retryMany } from '../../contract/operations/dead-letters.ts'
import { coversScope, type Principal } from '../../contract/principal.ts'
import type { Requested } from '../../contract/log-entry.ts'
import type { Event } from '../../core/event.ts'
import type { Env } from '../../env.ts'
import {
  deleteDeadLetters,
  findDeadLetter,
  groupDeadLetters,
  listDeadLetters,
  type DeadLetterRow,
  type DeadLetterQuery,
} from '../../store/dead-letters.ts'
import { validTraceparent } from '../../events/traceparent.ts'
import type { AuthEnv } from '../auth/middleware.ts'
import { resource, serve } from '../describe/operation.ts'
import { listed } from '../describe/paging.ts'
import { conflict, notFound } from '../problems/refusals.ts'
import { storeOf } from '../../store/store.ts'
import { redactedNow } from '../events/redacted.ts'
import type { DeploymentFeature } from '../../events/deployment.ts'
import { deploymentHider } from '../../base/secrets.ts'
import { cleanEvent } from '../../events/parse-event.ts'
import { completed } from '../../events/foreign-events.ts'
import type { ScopeApi } from '../../contract/scope-api.ts'

export const deadLetterRoutes = resource().openapiRoutes([
  serve(list, async ({ env, var: { principal } }, { query: { cursor: before, ...query } }) => {
    const found = await listDeadLetters(storeOf(env), { ...query, patterns: principal.scopes, before })
    const letters = await masked(env, found.items)
    return listed(
      { ...found, items: letters },
      {
        present,
        cursor: ({ dead_lettered_at, id }) => ({ at: dead_lettered_at, id }),
      },
    )
  }),
  serve(groups, async ({ env, var: { principal } }, { query }) => {
    const found = await groupDeadLetters(storeOf(env), { ...query, patterns: principal.scopes })
    const items = found.map(({ first, last, ...group }) => {
      const times = withIso({ first: first ?? 0, last: last ?? 0 }, ['first', 'last'])
      return { id: JSON.stringify([group.error, group.type]), ...group, ...times }
    })
    return { items, next_cursor: null }
  }),
  serve(find, async ({ env, var: { principal } }, { params: { id } }) => {
    const found = await covered(env, principal, id)
    const [letter = { ...found, shown: null }] = await masked(env, [found])
    return present(letter)
  }),
  serve(retryMany, (c, { body }) => retryNewest({ ...c.var, env: c.env }, { ...body, patterns: c.var.principal.scopes }, requestOf(c))),
  serve(retry, async (c, { params }) => {
    const found = await covered(c.env, c.var.principal, params.id)
    const { failed } = await retryDeadLetters({ ...c.var, env: c.env }, [found], requestOf(c))
    const { id, scope, event_id } = found
    if (failed[0]) throw conflict('not-retried', failed[0].reason)
    return { id, scope: scope ?? '', event_id: event_id ?? '', status: 'retried' as const }
  }),
  serve(discard, async (c, { params: { id } }) => {
    const { principal } = c.var
    await discardDeadLetters(c.env, [await covered(c.env, principal, id)], requestOf(c))
    return null
  }),
])

/** Deletes the letters, and tells the scopes of their events who discarded them. */
export async function discardDeadLetters(env: Env, letters: readonly DeadLetterRow[], { by, traceparent }: Requested): Promise<void> {
  const told = letters.filter((letter): letter is WithEvent => letter.origin === 'scope' && hasEvent(letter))
  for (const [scope, group] of Map.groupBy(told, (letter) => letter.scope)) {
    const ids = group.map(({ event_id }) => event_id)
    await env.SCOPE.getByName(scope).discard(ids, by, traceparent)
  }
  await deleteDeadLetters(storeOf(env), letters)
}

export const requestOf = ({ req, var: { principal } }: Pick<Context<AuthEnv>, 'req' | 'var'>): Requested => ({
  by: principal.name,
  traceparent: validTraceparent(req.header('traceparent')) ?? undefined,
})

async function covered(env: Env, principal: Principal, id: string): Promise<DeadLetterRow> {
  const found = await findDeadLetter(storeOf(env), id)
  if (!found || !coversScope(principal, found.scope ?? '*')) throw notFound(`There is no dead letter ${id} in the scopes of this key.`)
  return found
}

/** A letter whose payload is masked as its scope masks now: it may hide more than it did before. */
type ShownLetter = DeadLetterRow & { shown: unknown }

async function masked(env: Env, letters: readonly DeadLetterRow[]): Promise<ShownLetter[]> {
  const parsed = letters.map(({ scope, payload }) => ({ scope, payload: jsonValue(payload) }))
  const shown = await redactedNow(env)(parsed)
  return letters.map((letter, index) => {
    const value = shown[index]?.payload
    return { ...letter, shown: value, ...(value !== parsed[index]?.payload && { payload: JSON.stringify(value) }) }
  })
}

function present({ payload, event_id, shown, ...letter }: ShownLetter) {
  const content: { payload: string } | { event: Event } = event_id === null ? { payload } : { event: shown as Event }
  return { ...withIso(letter, ['dead_lettered_at']), event_id, ...content }
}

type Retried = { retried: DeadLetterRow[]; failed: { id: string; reason: string }[] }
type WithEvent = DeadLetterRow & { scope: string; event_id: string }

/** `env` of a deployment with `features`: some dead letters are theirs. */
export type Deployed = { env: Env; features: readonly DeploymentFeature[] }

/**
 * Requeues the events of dead letters, in one or two calls per scope, and what is a feature's.
 * Then deletes the letters.
 */
export async function retryDeadLetters({ env, features }: Deployed, letters: readonly DeadLetterRow[], by: Requested): Promise<Retried> {
  const retries = features.flatMap(({ retries: own }) => own ?? [])
  const owned = letters.filter(({ origin }) => retries.some((own) => own.origin === origin))
  const events = letters.filter((letter) => !owned.includes(letter))
  const read = events.map((letter) => ({ letter, event: readableOf(letter) }))
  const readable = read.flatMap(({ event }) => event ?? [])
  const unreadable = read.flatMap(({ letter, event }) => (event ? [] : [letter]))
  const scopes = await Promise.all(
    Array.from(
      Map.groupBy(readable, ({ scope }) => scope),
      ([scope, group]) => retryScope(env, scope, group, by),
    ),
  )
  for (const { origin, run } of retries) {
    const ids = owned.filter((letter) => letter.origin === origin).map(({ id }) => id)
    if (ids.length > 0) await run(env, ids)
  }
  const retried = [...owned, ...scopes.flatMap((outcome) => outcome.retried)]
  await deleteDeadLetters(storeOf(env), retried)
  return { retried, failed: [...unreadable.map(({ id }) => ({ id, reason: UNREADABLE })), ...scopes.flatMap(({ failed }) => failed)] }
}

/** Retries the newest matches page by page, so that not all events are in memory at once. */
async function retryNewest(
  deployed: Deployed,
  query: DeadLetterQuery,
  by: Requested,
): Promise<{ retried: number; failed: Retried['failed'] }> {
  const failed: Retried['failed'] = []
  let retried = 0
  let { before, limit } = query
  while (limit > 0) {
    const { items, more } = await listDeadLetters(storeOf(deployed.env), { ...query, before, limit })
    const page = await retryDeadLetters(deployed, items, by)
    retried += page.retried.length
    failed.push(...page.failed)
    const last = items.at(-1)
    if (!more || !last) break
    limit -= items.length
    before = { at: last.dead_lettered_at, id: last.id }
  }
  return { retried, failed }
}

const UNREADABLE = 'It holds no event that could be parsed. Inspect its payload, then discard it.'

const hasEvent = (letter: DeadLetterRow): letter is WithEvent => letter.scope !== null && letter.event_id !== null

/** A letter with an event that its scope can take; null if it holds none. */
function readableOf(letter: DeadLetterRow): WithEvent | null {
  if (!hasEvent(letter)) return null
  if (letter.origin !== 'queue') return letter
  // Another Worker may have sent it, and the queue may have given it up unread.
  const [event] = completed([jsonValue(letter.payload) as Event], letter.dead_lettered_at).events
  return event ? { ...letter, payload: JSON.stringify(event) } : null
}

async function retryScope(env: Env, scope: string, letters: readonly WithEvent[], { by, traceparent }: Requested): Promise<Retried> {
  const stub = env.SCOPE.getByName(scope)
  try {
    const reopened = new Set(
      await stub.reopen(
        letters.map(({ event_id }) => event_id),
        by,
        traceparent,
      ),
    )
    const rest = letters.filter(({ event_id }) => !reopened.has(event_id))
    const refused = rest.length === 0 ? null : await acceptAnew(env, stub, rest)
    if (refused === null) return { retried: [...letters], failed: [] }
    return { retried: letters.filter(({ event_id }) => reopened.has(event_id)), failed: rest.map(({ id }) => ({ id, reason: refused })) }
  } catch (error) {
    const reason = `The scope ${scope} could not be reached: ${error instanceof Error ? error.message : String(error)}`
    return { retried: [], failed: letters.map(({ id }) => ({ id, reason })) }
  }
}

/** For events that the scope never received or has deleted; others are duplicates there. */
async function acceptAnew(env: Env, stub: ScopeApi, letters: readonly WithEvent[]): Promise<string | null> {
  const hider = deploymentHider(env)
  const events = letters.map(({ payload }) => cleanEvent(JSON.parse(payload) as Event, hider))
  const accepted = await stub.accept(events, 'queue')
  return accepted.ok ? null : `The scope's inbox is full: it holds ${accepted.depth} of ${accepted.limit} events.`
}
