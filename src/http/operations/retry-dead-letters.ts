import type { Env } from '../../env.ts'
import type { DeploymentFeature } from '../../events/deployment.ts'
import type { Event } from '../../core/event.ts'
import { deploymentHider } from '../../base/secrets.ts'
import { cleanEvent } from '../../events/parse-event.ts'
import type { Requested } from '../../contract/log-entry.ts'
import type { ScopeApi } from '../../contract/scope-api.ts'
import { deleteDeadLetters, listDeadLetters, type DeadLetterRow, type DeadLetterQuery } from '../../store/dead-letters.ts'
import { storeOf } from '../../store/store.ts'

type Retried = { retried: DeadLetterRow[]; failed: { id: string; reason: string }[] }
type WithEvent = DeadLetterRow & { scope: string; event_id: string }

/** `env` of a deployment with `features`: some dead letters are theirs. */
type Deployed = { env: Env; features: readonly DeploymentFeature[] }

/**
 * Requeues the events of dead letters, in one or two calls per scope, and what is a feature's.
 * Then deletes the letters.
 */
export async function retryDeadLetters({ env, features }: Deployed, letters: readonly DeadLetterRow[], by: Requested): Promise<Retried> {
  const retries = features.flatMap(({ retries: own }) => own ?? [])
  const owned = letters.filter(({ origin }) => retries.some((own) => own.origin === origin))
  const events = letters.filter((letter) => !owned.includes(letter))
  const readable = events.filter(hasEvent)
  const unreadable = events.filter((letter) => !hasEvent(letter))
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
export async function retryNewest(
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
