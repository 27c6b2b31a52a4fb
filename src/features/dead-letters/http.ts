import type { DeploymentFeature } from '../../events/deployment.ts'
import type { Env } from '../../env.ts'
import { withIso } from '../../base/time.ts'
import { isKeyEnded } from '../../http/auth/middleware.ts'
import { resource, serve } from '../../http/describe/operation.ts'
import { discardDeadLetters, requestOf, retryDeadLetters, type Deployed } from '../../http/operations/dead-letters.ts'
import { conflict, notFound } from '../../http/problems/refusals.ts'
import { countMatching, listDeadLetters, type DeadLetterRow } from '../../store/dead-letters.ts'
import { storeOf } from '../../store/store.ts'
import { find, start } from './operations/jobs.ts'
import { countOpenJobs, findJob, insertJob, leaseJob, openJobs, takeLetters, updateJob, type LetterJobRow } from './store.ts'

export const letterJobRoutes = resource().openapiRoutes([
  serve(start, async (c, { body: { verb, ...which } }) => {
    const { env, var: about } = c
    const { principal, features } = about
    const { by, traceparent = null } = requestOf(c)
    const now = Date.now()
    // A letter that comes back later is not of this job.
    const before = { at: now + 1, id: '' }
    const patterns = principal.scopes
    if ((await countOpenJobs(storeOf(env), principal.key_id)) >= MOST_OF_A_KEY) throw tooManyJobs()
    const total = await countMatching(storeOf(env), { ...which, patterns, before })
    const head = { id: crypto.randomUUID(), verb, which, patterns, key_id: principal.key_id, by, traceparent }
    const job = await insertJob(storeOf(env), { ...head, started_at: now, before, total })
    c.executionCtx.waitUntil(runJob({ env, features }, job.id))
    return present(job)
  }),
  serve(find, async ({ env, var: { principal } }, { params: { id } }) => {
    const job = await findJob(storeOf(env), id)
    if (!job || !(job.key_id === principal.key_id || principal.scopes.includes('*'))) throw notFound(`There is no job ${id} of this key.`)
    return present(job)
  }),
])

function present({ id, verb, by, started_at, ended_at, total, done, failed, error }: LetterJobRow) {
  const gone = ended_at === null ? 0 : Math.max(0, total - done - failed)
  return withIso({ id, verb, by, started_at, ended_at, total, done, failed, gone, error }, ['started_at', 'ended_at'])
}

const MOST_OF_A_KEY = 20
const tooManyJobs = () =>
  conflict('too-many-jobs', `This key has ${MOST_OF_A_KEY} jobs on dead letters that have not ended. Start more once some of them have.`)

const PAGE = 100
/** The time that one request gives to its job, and one sweep to all jobs. */
const BUDGET_MS = 20_000
/** A page takes less. */
const LEASE_MS = 60_000

/** Continues the jobs that no request runs; returns the number of letters. */
export async function continueJobs(env: Env, now: number, features: readonly DeploymentFeature[]): Promise<number> {
  let sum = 0
  const open = await openJobs(storeOf(env), now)
  for (const id of open) sum += await runJob({ env, features }, id, BUDGET_MS / open.length)
  return sum
}

const KEY_ENDED = 'The key that started this job was deleted or has expired.'

/** Does pages of a job, and at least one, until its time is spent. Its row has the next place. */
async function runJob(deployed: Deployed, id: string, budget_ms = BUDGET_MS): Promise<number> {
  const db = storeOf(deployed.env)
  const began = Date.now()
  if (!(await leaseJob(db, id, { now: began, until: began + LEASE_MS }))) return 0
  let letters = 0
  for (;;) {
    const job = await findJob(db, id)
    if (!job || job.ended_at !== null) return letters
    if (await isKeyEnded(deployed.env, job)) {
      const { before, done, total, leased_until, patterns } = job
      const left = await countMatching(db, { ...job.which, patterns, before })
      // Letters that came since are none of its total.
      const failed = Math.max(job.failed, Math.min(job.failed + left, total - done))
      await updateJob(db, id, { before, done, failed, error: KEY_ENDED, ended_at: Date.now(), leased_until })
      return letters
    }
    const { items, more } = await listDeadLetters(db, { ...job.which, patterns: job.patterns, before: job.before, limit: PAGE })
    const taken = await takeLetters(db, id, items, Date.now())
    const failed = await act(deployed, job, taken)
    letters += taken.length
    const last = items.at(-1)
    const now = Date.now()
    const isOver = !more || last === undefined
    const isSpent = isOver || now - began > budget_ms
    await updateJob(db, id, {
      before: last ? { at: last.dead_lettered_at, id: last.id } : job.before,
      done: job.done + taken.length - failed.length,
      failed: job.failed + failed.length,
      error: failed.at(-1)?.reason ?? job.error,
      ended_at: isOver ? now : null,
      leased_until: isSpent ? now : now + LEASE_MS,
    })
    if (isOver) return letters
    if (isSpent) break
  }
  // The sweeper sweeps by its own alarm, also where no cron runs.
  await deployed.env.SWEEPER.getByName('sweeper').arm()
  return letters
}

async function act(deployed: Deployed, { verb, by, traceparent }: LetterJobRow, letters: readonly DeadLetterRow[]) {
  const request = { by, traceparent: traceparent ?? undefined }
  if (verb === 'retry') return (await retryDeadLetters(deployed, letters, request)).failed
  await discardDeadLetters(deployed.env, letters, request)
  return []
}
