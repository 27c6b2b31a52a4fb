import { raiseAlerts } from '../features/notices/events/alerts.ts'
import { forgetOld, type RetentionStep } from './retention.ts'
import type { Env } from '../env.ts'
import { expireApprovals } from '../features/approvals/store/approvals.ts'
import { batchesAfter, dropBatches, markSentAgain, seqAt, unseenBatches } from '../store/queued.ts'
import { crowdedOwners, evictSkills, MANY_VERSIONS } from '../features/statistics/store/evict-skills.ts'
import { overdueScopes, setWake } from '../store/scopes.ts'
import { grouped, pack } from './pack.ts'
import { LATE_MS, send } from './enqueue.ts'
import { learnAgain } from '../features/learning/events/learning.ts'
import { logError, warn } from '../base/warn.ts'
import { sumEnded } from '../features/statistics/store/sums.ts'
import { LEDGER } from '../features/market/contract/ledger-api.ts'
import { lapsedGoods } from '../features/market/store/ownership.ts'
import { storeOf } from '../store/store.ts'

const OVERDUE_MS = 60_000
const MINUTE_MS = 60_000
const PAGE = 100
/** Messages of at most 240 kB each. */
const SENT_AT_ONCE = 16
/** Buckets of statistics; a minute ends three of them. */
const BUCKETS_AT_ONCE = 100
/** Consumers run concurrently: batches may arrive out of order by this much. */
const SKEW_MS = 10_000

/** Restarts stuck work. Idempotent, safe beside another sweep; a failed step stops no other. */
export async function sweep(
  env: Env,
  now: number,
  retention: readonly RetentionStep[] = [],
): Promise<{
  sent_again: number
  poked: number
  expired: number
  forgotten: number
  approvals_forgotten: number
}> {
  await step('raising alerts', () => raiseAlerts(env, now))
  const sent_again = await step('sending again', () => sendAgain(env, now))
  const poked = await step('waking overdue scopes', async () => {
    const overdue = await overdueScopes(storeOf(env), now - OVERDUE_MS)
    return (await Promise.all(overdue.map((scope) => poke(env, scope)))).filter(Boolean).length
  })
  const expired = await step('expiring approvals', () => expireApprovals(storeOf(env), now))
  await step('summing statistics', () => sumEnded(storeOf(env), now, BUCKETS_AT_ONCE))
  if (Math.floor(now / MINUTE_MS) % 60 === 0) await step('evicting skills', () => evict(env, now))
  await step('revoking licences', () => revokeLapsed(env))
  await step('starting to learn', () => learnAgain(env, now))
  const { events, approvals } = await forgetOld(env, { now, step, retention })
  return { sent_again, poked, expired, forgotten: events, approvals_forgotten: approvals }
}

/** Ends the licences of versions that run no more, if the change of their state could not do it. */
async function revokeLapsed(env: Env): Promise<number> {
  const lapsed = await lapsedGoods(storeOf(env), PAGE)
  for (const { artifact, hash, state } of lapsed) await env.LEDGER.getByName(LEDGER).revoke({ artifact, hash, reason: `it is ${state}` })
  return lapsed.length
}

/**
 * Drops batches that the log has, and resends overdue ones that the queue lost. While the queue
 * delivers, batches newer than the newest one that arrived are still in it.
 */
async function sendAgain(env: Env, now: number): Promise<number> {
  const late: string[] = []
  let reached: bigint | null = null
  for (let after: string | undefined = '-1'; after !== undefined;) {
    const page = await batchesAfter(storeOf(env), after, PAGE)
    await dropBatches(
      storeOf(env),
      page.filter(({ known, events }) => known === events).map(({ id }) => id),
    )
    for (const { id, due_at, known, events } of page) {
      if (known > 0) reached = BigInt(id)
      if (known < events && due_at < now) late.push(id)
    }
    after = page.length < PAGE ? undefined : page.at(-1)?.id
  }
  const passed = reached === null ? null : reached - BigInt(seqAt(SKEW_MS))
  return sendBatches(
    env,
    late.filter((id) => passed === null || BigInt(id) < passed),
    now,
  )
}

/** Sends a few at a time, to fit them into memory. */
async function sendBatches(env: Env, ids: readonly string[], now: number): Promise<number> {
  let sent = 0
  for (let from = 0; from < ids.length; from += SENT_AT_ONCE) {
    const batches = await unseenBatches(storeOf(env), ids.slice(from, from + SENT_AT_ONCE))
    const unsure = await send(env, grouped(batches.flatMap(({ id, events }) => pack(events, id))))
    const taken = batches.filter(({ events }) => !events.some((event) => unsure.has(event)))
    await markSentAgain(
      storeOf(env),
      taken.map(({ id }) => id),
      { now, wait_ms: LATE_MS },
    )
    sent += taken.reduce((sum, { events }) => sum + events.length, 0)
    // The queue is unavailable: what it did not accept stays overdue.
    if (unsure.size > 0) break
  }
  return sent
}

/** Once an hour: it reads all active skills. */
async function evict(env: Env, now: number): Promise<number> {
  const db = storeOf(env)
  const evicted = await evictSkills(db, now)
  for (const { id, version, reason } of evicted) warn({ message: 'a mined skill was deprecated', id, version, reason })
  for (const { owner, active } of await crowdedOwners(db)) {
    const message = `an owner has more than ${MANY_VERSIONS} active versions of skills, and models see five at a time: deprecate some`
    warn({ message, owner, active })
  }
  return evicted.length
}

async function step(name: string, work: () => Promise<number>): Promise<number> {
  try {
    return await work()
  } catch (error) {
    logError({ message: 'a step of the sweep failed; the next sweep will retry', step: name, error })
    return 0
  }
}

async function poke(env: Env, scope: string): Promise<boolean> {
  try {
    const { wake_at } = await env.SCOPE.getByName(scope).poke()
    await setWake(storeOf(env), scope, wake_at)
    return true
  } catch (error) {
    warn({ message: 'failed to wake an overdue scope; the next sweep will retry', scope, error })
    return false
  }
}
