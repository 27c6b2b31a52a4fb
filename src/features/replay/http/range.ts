import type { z } from 'zod'
import type { Context } from 'hono'
import type { Computing } from '../../../base/computing.ts'
import { NDJSON } from '../../../contract/operation.ts'
import { rangeLimits, replayRange as replayScope, type rangeLines } from '../operations/replay.ts'
import type { RangeProgress, RangeReport } from '../contract/replay.ts'
import type { ScopeApi } from '../../../contract/scope-api.ts'
import { isBasis, isForeign } from '../what-if/changes.ts'
import { replayRange } from '../what-if/range.ts'
import { rangeRecording } from '../../../traces/recording-lines.ts'
import { enterComputing } from '../../../http/auth/computing.ts'
import type { AuthEnv } from '../../../http/auth/middleware.ts'
import { jsonText, resource, serve, type RequestOf } from '../../../http/describe/operation.ts'
import { problemOf } from '../../../http/problems/problem.ts'
import { invalid } from '../../../http/problems/refusals.ts'
import { resolveChanges, showsMore } from './changes.ts'
import { manifestsOf, programsOf } from '../../traces/http/export.ts'
import { hostOf } from './host.ts'
import { logReplay } from './log-replay.ts'

export const rangeReplayRoutes = resource().openapiRoutes([
  serve(replayScope, async (c, { body: asked }) => {
    const until = asked.until ?? new Date().toISOString()
    if (until <= asked.since) throw invalid('`until` must be after `since`.')
    // Refuses what is wrong with the request before a stream begins.
    await resolveChanges(asked, { ...callerOf(c), is_file: false, settings: [] })
    const parts = replaying(c, { ...asked, until }, await enterComputing(c.var.principal))
    if (c.req.header('Accept')?.includes(NDJSON) !== true) return lastOf(parts)
    return streamed(linesOf(parts, c.req))
  }),
])

/** Typed as the report, which the last line holds. */
function streamed(body: ReadableStream<Uint8Array>) {
  const response = jsonText(body)
  response.headers.set('Content-Type', NDJSON)
  return response
}

type Caller = Context<AuthEnv>
type Range = RequestOf<typeof replayScope>['body'] & { until: string }
type Replaying = AsyncGenerator<RangeProgress, RangeReport>

const callerOf = ({ env, var: { agents, principal, scope } }: Pick<Caller, 'env' | 'var'>) => ({ env, agents, principal, scope })

async function* replaying(c: Caller, asked: Range, computing: Computing): Replaying {
  const caller = callerOf(c)
  const { env, agents, scope } = caller
  const recorded: Pick<ScopeApi, 'recording'> = env.SCOPE.getByName(scope)
  const contexts = showsMore(asked)
  const since = Date.parse(asked.since)
  const ends = Date.now() + rangeLimits.ms
  const replayed = replayRange({
    scope,
    mode: asked.mode,
    since,
    until: Date.parse(asked.until),
    after: asked.cursor === undefined ? null : Number(asked.cursor),
    most_entries: rangeLimits.entries,
    read: (after, limit) => rangeRecording(recorded, { since, after, limit, contexts }),
    complete: async (page) => {
      const [programs, manifests] = await Promise.all([programsOf(env, page), manifestsOf(env, page)])
      return { programs, manifests }
    },
    resolve: async ({ settings, parts }) => {
      const bases = Object.values(parts).filter(isBasis)
      return resolveChanges(asked, { ...caller, is_file: false, settings: [settings, ...bases.map((basis) => basis.settings)] })
    },
    host: hostOf(env, { agents, computing, is_foreign: isForeign(asked) }),
    isLate: () => Date.now() >= ends,
  })
  const report = yield* leaving(replayed, computing)
  const { mode, changes_hash, same, changed, unknown, since: first, until } = report
  await logReplay(c, { mode, changes_hash, of: { since: first, until }, compared: same + changed, changed, unknown })
  return report
}

/** Leaves the place at the end, also where the reader has gone. */
async function* leaving(parts: Replaying, computing: Computing): Replaying {
  try {
    return yield* parts
  } finally {
    computing.leave()
  }
}

async function lastOf(parts: Replaying): Promise<RangeReport> {
  for (;;) {
    const next = await parts.next()
    if (next.done) return next.value
  }
}

/** The stream's reader sets the pace: a client that has gone stops the replay. */
function linesOf(parts: Replaying, request: { method: string; path: string }): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  return new ReadableStream({
    async pull(controller) {
      const send = (line: z.input<typeof rangeLines>) => controller.enqueue(encoder.encode(`${JSON.stringify(line)}\n`))
      try {
        const next = await parts.next()
        if (!next.done) return send({ progress: next.value })
        send({ report: next.value })
      } catch (error) {
        const { problem, ...instance } = problemOf(error, request)
        send({ error: problem.detail, ...instance })
      }
      controller.close()
    },
    cancel: () => void parts.return(null as never),
  })
}
