import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import type { Computing } from '../../../base/computing.ts'
import { rangeProgress, rangeReport, type RangeProgress, type RangeReport } from '../contract/replay.ts'
import type { ScopeApi } from '../../../contract/scope-api.ts'
import { isBasis, isForeign } from '../what-if/changes.ts'
import { replayRange } from '../what-if/range.ts'
import { rangeRecording } from '../../../traces/recording-lines.ts'
import { enterComputing } from '../../../http/auth/computing.ts'
import type { AuthEnv } from '../../../http/auth/middleware.ts'
import { described, plainSchema } from '../../../http/body/plain-schema.ts'
import {
  NDJSON,
  guard,
  instant,
  json,
  jsonRequest,
  jsonText,
  problems,
  resource,
  routes,
  scopePath,
} from '../../../http/describe/describe.ts'
import { problemOf } from '../../../http/problems/problem.ts'
import { invalid, refuseInvalid } from '../../../http/problems/refusals.ts'
import { replayFields, resolveChanges, showsMore } from './changes.ts'
import { manifestsOf, programsOf } from '../../traces/http/export.ts'
import { hostOf } from './host.ts'
import { logReplay } from './log-replay.ts'

const route = routes('Traces')
const MOST_ENTRIES = 200_000
/** Longer requests end with a cursor. */
const MOST_MS = 60_000

const rangeRequest = z.strictObject({
  ...replayFields,
  since: instant.describe('Log entries at or after this time.'),
  until: instant.optional().describe('Log entries before this time; now by default.'),
  cursor: z
    .string()
    .regex(/^\d{1,15}$/, 'pass the next_cursor of the report before')
    .optional(),
})

const lines = z.union([
  z.object({ progress: rangeProgress }),
  z.object({ report: rangeReport }),
  z.object({ error: z.string(), instance: z.string().optional() }),
])

const ranged = route('post /v1/scopes/{scope}/replay', 'replayScope', 'Replay a time range of a scope', {
  description:
    'Decides again on everything that the log of the scope has between two times, pinned or with `changes`, and reports how many decisions are the same, changed ' +
    'or unknown, usage and effects on both sides, and the ten most telling changes. It calls no tool and changes nothing; the log gets one entry `replay-done`. ' +
    `A request reads up to ${MOST_ENTRIES} entries or ${MOST_MS / 1000} s; \`next_cursor\` continues it. With \`Accept: application/x-ndjson\` the answer is a stream of lines: ` +
    '`{"progress": …}` after each part, and `{"report": …}` or `{"error": …}` at last.',
  ...guard({ roles: ['viewer'], scoped: true, body: 'json' }),
  request: {
    params: scopePath,
    body: jsonRequest(described<z.input<typeof rangeRequest>>(plainSchema(rangeRequest)), {
      since: '2026-11-21T00:00:00Z',
      until: '2026-11-22T00:00:00Z',
      mode: 'what_if',
      changes: { settings: { tau: 0.9 } },
    }),
  },
  responses: {
    200: { description: 'The report.', content: { ...json(rangeReport, '').content, [NDJSON]: { schema: lines } } },
    ...problems(400, 413, 415),
  },
})

export const rangeReplayRoutes = resource().openapi(ranged, async (c) => {
  const asked = refuseInvalid({ target: 'json', ...rangeRequest.safeParse(await c.req.json()) })
  const until = asked.until ?? new Date().toISOString()
  if (until <= asked.since) throw invalid('`until` must be after `since`.')
  // Refuses what is wrong with the request before a stream begins.
  await resolveChanges(asked, { ...callerOf(c), is_file: false, settings: [] })
  const parts = replaying(c, { ...asked, until }, await enterComputing(c.var.principal))
  if (c.req.header('Accept')?.includes(NDJSON) !== true) return c.json(await lastOf(parts), 200)
  return streamed(linesOf(parts, c.req))
})

/** Typed as the report, which the last line holds. */
function streamed(body: ReadableStream<Uint8Array>) {
  const response = jsonText<RangeReport>(body)
  response.headers.set('Content-Type', NDJSON)
  return response
}

type Caller = Context<AuthEnv>
type Range = z.output<typeof rangeRequest> & { until: string }
type Replaying = AsyncGenerator<RangeProgress, RangeReport>

const callerOf = ({ env, var: { agents, principal, scope } }: Pick<Caller, 'env' | 'var'>) => ({ env, agents, principal, scope })

async function* replaying(c: Caller, asked: Range, computing: Computing): Replaying {
  const caller = callerOf(c)
  const { env, agents, scope } = caller
  const recorded: Pick<ScopeApi, 'recording'> = env.SCOPE.getByName(scope)
  const contexts = showsMore(asked)
  const since = Date.parse(asked.since)
  const ends = Date.now() + MOST_MS
  const replayed = replayRange({
    scope,
    mode: asked.mode,
    since,
    until: Date.parse(asked.until),
    after: asked.cursor === undefined ? null : Number(asked.cursor),
    most_entries: MOST_ENTRIES,
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
      const send = (line: z.input<typeof lines>) => controller.enqueue(encoder.encode(`${JSON.stringify(line)}\n`))
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
