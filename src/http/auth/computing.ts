import { ComputingShares, type Computing } from '../../base/computing.ts'
import type { Principal } from '../../contract/principal.ts'
import { tooMany } from '../problems/refusals.ts'

/**
 * About 20 s of computing in a minute. The reflexes of 10,000 events usually take a tenth of it.
 */
const UNITS_PER_MINUTE = 4_000_000_000

const shares = new ComputingShares(
  { units_per_minute: UNITS_PER_MINUTE, at_once: { key: 2, all: 3, most: 5 } },
  { now: () => Date.now(), wait: (ms) => scheduler.wait(ms) },
)

/** A place to compute for a key, which the caller must leave. */
export async function enterComputing({ key_id, name }: Principal): Promise<Computing> {
  const entered = await shares.enter(key_id)
  if (entered.ok) return entered.computing
  const { reason, retry_s } = entered
  const why =
    reason === 'spent'
      ? `The key ${name} has used up what it may compute in a minute, in replays, evaluations and runs of reflexes.`
      : 'Too many replays and evaluations run at once.'
  throw tooMany('too-many-requests', `${why} Try again in ${retry_s} s.`, retry_s)
}

/** Computes for a key, with a place among those who compute at once. */
export async function withComputing<Result>(
  principal: Principal,
  work: (computing: Computing) => Promise<Result> | Result,
): Promise<Result> {
  const entered = await enterComputing(principal)
  try {
    return await work(entered)
  } finally {
    entered.leave()
  }
}
