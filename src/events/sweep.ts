import type { DeploymentFeature } from './deployment.ts'
import { forgetOld, type RetentionStep } from './retention.ts'
import type { Env } from '../env.ts'
import { packedAmong } from '../store/packs/find.ts'
import { MERGE_MS, mergePacks } from '../store/packs/merge.ts'
import { sortTold, type Sorters } from '../store/packs/told.ts'
import { batchesAfter, dropBatches, markSentAgain, msOf, nameOf, seqAt, unseenBatches } from '../store/queued.ts'
import { overdueScopes, scopesAhead, setWake } from '../store/scopes.ts'
import { grouped, pack, LATE_MS, send } from './queue.ts'
import { logError, warn } from '../base/warn.ts'
import { packDatabases, storeOf } from '../store/store.ts'

const OVERDUE_MS = 60_000
const PAGE = 100
/** Messages of at most 240 kB each. */
const SENT_AT_ONCE = 16
/** Consumers run concurrently: batches may arrive out of order by this much. */
const SKEW_MS = 10_000

export type SweepSteps = { retention?: readonly RetentionStep[]; features?: readonly DeploymentFeature[] }
/** `steps`: the count of each step of a feature, by its name. */
type Done = { sent_again: number; poked: number; forgotten: number; steps: Record<string, number> }

/** Restarts stuck work. Idempotent, safe beside another sweep; a failed step stops no other. */
export async function sweep(env: Env, now: number, { retention = [], features = [] }: SweepSteps = {}): Promise<Done> {
  const databases = packDatabases(storeOf(env))
  // First, since the other steps read them.
  await step('sorting what scopes told', () => sortTold(storeOf(env), { sorters: sortersOf(features), before: now, now }))
  for (const { name, db } of databases) await step(`merging packs in ${name}`, () => mergePacks(db, now, MERGE_MS / databases.length))
  const sent_again = await step('sending again', () => sendAgain(env, now))
  const poked = await step('waking overdue scopes', async () => {
    const db = storeOf(env)
    const late = [...(await overdueScopes(db, now - OVERDUE_MS)), ...(await scopesAhead(db, now))]
    return (await Promise.all(late.map((scope) => poke(env, scope, now)))).filter(Boolean).length
  })
  // A step of a feature may be slow: lost events and overdue scopes come first (G1).
  const steps: Record<string, number> = {}
  for (const { name, run } of features.flatMap(({ sweeps = [] }) => sweeps)) steps[name] = await step(name, () => run(env, now, features))
  const old = [...features.flatMap(({ forgets = [] }) => forgets), ...retention]
  const forgotten = await forgetOld(env, { now, step, retention: old })
  return { sent_again, poked, forgotten: forgotten.events, steps: { ...steps, ...forgotten.steps } }
}

/** The sorters of the answers of scopes, by name. */
export const sortersOf = (features: readonly DeploymentFeature[]): Sorters =>
  new Map(features.flatMap(({ packs }) => (packs ? [[packs.name, packs.sort] as const] : [])))

/**
 * Drops batches that the log has, and resends overdue ones that the queue lost. While the queue
 * delivers, batches newer than the newest one that arrived are still in it. So is the rest of one
 * that has arrived in part, for a while: without newer ones nothing else would tell of its loss.
 */
async function sendAgain(env: Env, now: number): Promise<number> {
  // A clock that was ahead sent the batch: its id has no place among the ids of now.
  const isAhead = (id: string) => msOf(BigInt(id)) > now + SKEW_MS
  const isWaitAhead = (id: string, due_at: number) => isAhead(id) && due_at > msOf(BigInt(id))
  const late: { id: string; isPartial: boolean; attempts: number }[] = []
  let reached: bigint | null = null
  for (let after: string | undefined = '-1'; after !== undefined;) {
    const page = await batchesAfter(storeOf(env), after, PAGE)
    const lacking = await notPacked(
      env,
      page.flatMap(({ unseen }) => unseen),
      page[0]?.id,
    )
    const missing = page.map(({ unseen, ...batch }) => ({ ...batch, missing: lacking(unseen).length }))
    await dropBatches(
      storeOf(env),
      missing.filter((batch) => batch.missing === 0).map(({ id }) => id),
    )
    for (const { id, due_at, attempts, events, missing: count } of missing) {
      if (count < events && !isAhead(id)) reached = BigInt(id)
      if (count > 0 && (due_at < now || isWaitAhead(id, due_at))) late.push({ id, isPartial: count < events, attempts })
    }
    after = page.length < PAGE ? undefined : page.at(-1)?.id
  }
  const passed = reached === null ? null : reached - BigInt(seqAt(SKEW_MS))
  const isPassed = (id: string) => passed === null || isAhead(id) || BigInt(id) < passed
  const arriving = late.filter(({ id, isPartial, attempts }) => !isPassed(id) && isPartial && attempts === 0)
  await markSentAgain(
    storeOf(env),
    arriving.map(({ id }) => id),
    { now, wait_ms: LATE_MS },
  )
  const lost = late.filter(({ id, isPartial, attempts }) => isPassed(id) || (isPartial && attempts > 0))
  return sendBatches(
    env,
    lost.map(({ id }) => id),
    now,
  )
}

/**
 * Tells which events no pack has, of those that were sent with the batch `first` or later. Those in
 * a database that does not answer are sent again, and are duplicates.
 */
async function notPacked(env: Env, events: readonly { scope: string; id: string }[], first = '0') {
  const packed = await packedAmong(storeOf(env), events, { since: msOf(BigInt(first)) - SKEW_MS, missing: new Set() })
  return <Event extends { scope: string; id: string }>(some: readonly Event[]): Event[] =>
    some.filter((event) => !packed.has(nameOf(event)))
}

/** Sends a few at a time, to fit them into memory. */
async function sendBatches(env: Env, ids: readonly string[], now: number): Promise<number> {
  let sent = 0
  for (let from = 0; from < ids.length; from += SENT_AT_ONCE) {
    const unseen = await unseenBatches(storeOf(env), ids.slice(from, from + SENT_AT_ONCE))
    const lacking = await notPacked(
      env,
      unseen.flatMap(({ events }) => events),
      ids[from],
    )
    const batches = unseen.map(({ id, events }) => ({ id, events: lacking(events) }))
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

async function step(name: string, work: () => Promise<number>): Promise<number> {
  try {
    return await work()
  } catch (error) {
    logError({ message: 'a step of the sweep failed; the next sweep will retry', step: name, error })
    return 0
  }
}

async function poke(env: Env, scope: string, now: number): Promise<boolean> {
  try {
    const { wake_at } = await env.SCOPE.getByName(scope).poke()
    await setWake(storeOf(env), { scope, wake_at, now })
    return true
  } catch (error) {
    warn({ message: 'failed to wake an overdue scope; the next sweep will retry', scope, error })
    return false
  }
}
