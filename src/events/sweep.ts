import type { RetentionStep } from '../contract/retention-step.ts'
import type { Env } from '../env.ts'
import { expireApprovals } from '../store/approvals.ts'
import { lateQueued, markSentAgain } from '../store/events.ts'
import { overdueScopes, setWake } from '../store/scopes.ts'
import { send } from './enqueue.ts'
import { forgetOld } from './retention.ts'
import { logError, warn } from '../base/warn.ts'

/** How long an event may stay `queued` before it is sent again; the inbox drops it if the queue had it after all. */
export const LATE_MS = 30_000
const OVERDUE_MS = 60_000
/** Of a few hundred events each. */
const MOST_ROUNDS = 100

/** Finds what is stuck anywhere and puts it right. Idempotent, and safe beside another sweep; one step's failure does not keep the others from theirs. */
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
  const sent_again = await step('sending again', () => sendAgain(env, now))
  const poked = await step('waking overdue scopes', async () => {
    const overdue = await overdueScopes(env.DB, now - OVERDUE_MS)
    return (await Promise.all(overdue.map((scope) => poke(env, scope)))).filter(Boolean).length
  })
  const expired = await step('expiring approvals', () => expireApprovals(env.DB, now))
  const { events, approvals } = await forgetOld(env, { now, step, retention })
  return { sent_again, poked, expired, forgotten: events, approvals_forgotten: approvals }
}

/** In batches that fit into memory, until nothing is late any more: what was sent again is not late. */
async function sendAgain(env: Env, now: number): Promise<number> {
  let sent = 0
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const late = await lateQueued(env.DB, now - LATE_MS)
    if (late.length === 0) break
    const unsure = await send(
      env,
      late.map(({ event }) => event),
    )
    const taken = late.filter(({ event }) => !unsure.has(event))
    await markSentAgain(
      env.DB,
      taken.map(({ seq }) => seq),
      now,
    )
    sent += taken.length
    // It is away: what it did not take stays late.
    if (unsure.size > 0) break
  }
  return sent
}

async function step(name: string, work: () => Promise<number>): Promise<number> {
  try {
    return await work()
  } catch (error) {
    logError({ message: 'a step of the sweep failed, the next sweep tries again', step: name, error })
    return 0
  }
}

async function poke(env: Env, scope: string): Promise<boolean> {
  try {
    const { wake_at } = await env.SCOPE.getByName(scope).poke()
    await setWake(env.DB, scope, wake_at)
    return true
  } catch (error) {
    warn({ message: 'an overdue scope could not be woken, the next sweep tries again', scope, error })
    return false
  }
}
