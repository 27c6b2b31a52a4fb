import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import type { AgentRegistry } from '../../../agent/registry.ts'
import type { Computing } from '../../../base/computing.ts'
import { isJsonFields, jsonValue } from '../../../base/json.ts'
import { limits } from '../../../base/limits.ts'
import { warn } from '../../../base/warn.ts'
import { replayReport, type ReplayReport } from '../contract/replay.ts'
import type { Principal } from '../../../contract/principal.ts'
import { scopeName } from '../../../core/event.ts'
import type { Env } from '../../../env.ts'
import { bundle, openRecordings, RECORDING_SCHEMA, type Recording } from '../recording.ts'
import { mergeReports } from '../what-if/merge.ts'
import { replay } from '../replay.ts'
import { isBasis, isForeign } from '../what-if/changes.ts'
import { whatIf } from '../what-if/what-if.ts'
import { withComputing } from '../../../http/auth/computing.ts'
import type { AuthEnv } from '../../../http/auth/middleware.ts'
import { guard, json, jsonRequest, jsonText, problems, resource, routes, traceId } from '../../../http/describe/describe.ts'
import { described, plainSchema } from '../../../http/body/plain-schema.ts'
import { invalid, refuseInvalid } from '../../../http/problems/refusals.ts'
import { replayRequest, resolveChanges, showsMore, type ReplayQuery } from './changes.ts'
import { exportTrace, recordingsOf } from '../../traces/http/export.ts'
import { hostOf } from './host.ts'
import { logReplay } from './log-replay.ts'
import { rangeReplayRoutes } from './range.ts'
import { scopesOfTrace } from '../../traces/http/trace-scope.ts'

const route = routes('Traces')

const tracePath = z.object({
  trace_id: traceId.describe('32 hex digits, as in W3C trace context.'),
})
const ofScope = z.object({
  scope: scopeName
    .optional()
    .describe('The scope whose log has the trace. By default those of its events and calls, once they are replicated.'),
})
const recording = z
  .looseObject({ schema: z.int(), trace_id: z.string(), scope: z.string().optional(), sha256: z.string() })
  .describe(
    `A self-contained file of schema version ${RECORDING_SCHEMA}. \`sha256\` is over the canonical JSON of its other fields. ` +
      'If the trace went through several scopes, `recordings` has one file for each.',
  )

const fileRequest = z.union([recording, replayRequest.extend({ recording })])

const exported = route('get /v1/traces/{trace_id}/export', 'exportTrace', 'Export a trace as one file', {
  description:
    'Log entries, events, settings, code of reflexes, manifests and messages of prompts: all that the decisions of the trace were made from, without secrets. ' +
    '`POST /v1/replay` decides again from it.',
  ...guard({ roles: ['viewer'] }),
  request: { params: tracePath, query: ofScope },
  responses: { 200: json(recording, 'The file.'), ...problems(400, 404) },
})

const replayed = route('post /v1/traces/{trace_id}/replay', 'replayTrace', 'Replay a trace', {
  description:
    'Decides again from the log, with the code of this deployment, and compares every decision and output with what was recorded. ' +
    'With `mode: what_if`, the named `changes` take the place of what was recorded. It calls no tool and changes nothing. ' +
    'It asks no model, except within a `budget`, which needs the role `operator`.',
  ...guard({ roles: ['viewer'], body: 'optional' }),
  request: {
    params: tracePath,
    query: ofScope,
    body: jsonRequest(described<z.input<typeof replayRequest>>(plainSchema(replayRequest)), {
      mode: 'what_if',
      changes: { settings: { tau: 0.9 } },
    }),
  },
  responses: { 200: json(replayReport, 'The comparison.'), ...problems(400, 404, 413, 415) },
})

const replayedFile = route('post /v1/replay', 'replayFile', 'Replay an exported trace', {
  description:
    'The body is a file of `GET /v1/traces/{trace_id}/export`, or `{"recording": FILE, "mode": "what_if", "changes": …}`. It may be compressed with ' +
    `\`Content-Encoding: gzip\`, and has at most ${limits.file_bytes} bytes uncompressed. A file that was changed or cut off is rejected as a whole.`,
  ...guard({ roles: ['viewer'], body: 'file' }),
  request: {
    body: jsonRequest(described<z.input<typeof fileRequest>>(plainSchema(fileRequest)), {
      schema: RECORDING_SCHEMA,
      trace_id: 'a'.repeat(32),
      scope: 'default',
      sha256: 'b'.repeat(64),
    }),
  },
  responses: { 200: json(replayReport, 'The comparison.'), ...problems(400, 413, 415) },
})

const traceReplayRoutes = resource()
  .openapi(exported, async (c) => {
    const { trace_id } = c.req.valid('param')
    const scopes = await scopesOfTrace(c.env, c.var.principal, trace_id, c.req.valid('query').scope)
    const found = await exportTrace(c.env, scopes, { trace_id, contexts: true }, { key: c.var.principal })
    return jsonText<z.infer<typeof recording>>(JSON.stringify(await bundle(trace_id, found)))
  })
  .openapi(replayed, async (c) => {
    const { trace_id } = c.req.valid('param')
    const scopes = await scopesOfTrace(c.env, c.var.principal, trace_id, c.req.valid('query').scope)
    const asked = refuseInvalid({ target: 'json', ...replayRequest.safeParse(jsonValue(await c.req.text()) ?? {}) })
    const reports = await withComputing(c.var.principal, async (computing) => {
      const found = await recordingsOf(c.env, scopes, { trace_id, contexts: showsMore(asked) })
      return replayAll(found, asked, { ...callerOf(c), computing })
    })
    for (const { scope, report } of reports) {
      const { mode, changes_hash, compared, changed, unknown } = report
      await logReplay(c, { mode, of: { trace_id }, changes_hash, compared, changed, unknown: unknown.length }, scope)
    }
    return c.json(mergeReports(reports.map(({ report }) => report)), 200)
  })
  .openapi(replayedFile, async (c) => {
    const { file, ...asked } = askedOf(await c.req.text())
    const reports = await withComputing(c.var.principal, async (computing) => {
      const opened = await openRecordings(file, (steps) => computing.run(steps))
      if (!opened.ok) throw invalid(opened.detail)
      return replayAll(opened.recordings, asked, { ...callerOf(c), computing, is_file: true }).catch(unreadable)
    })
    return c.json(mergeReports(reports.map(({ report }) => report)), 200)
  })

export const replayRoutes = resource().route('/', traceReplayRoutes).route('/', rangeReplayRoutes)

/** Anybody can write a file with a fitting sum, so that a wrong shape is the fault of the file. */
function unreadable(error: unknown): never {
  if (!(error instanceof TypeError || error instanceof RangeError)) throw error
  warn({ message: 'A file could not be replayed', error })
  throw invalid('The file cannot be replayed: something in it does not have the shape that the log gives it.')
}

/** A file alone is replayed pinned; with changes it is a field of the body. */
function askedOf(text: string): ReplayQuery & { file: string } {
  const body = jsonValue(text)
  if (!isJsonFields(body) || body['recording'] === undefined) return { mode: 'pinned', file: text }
  const { recording: file, ...asked } = body
  return { ...refuseInvalid({ target: 'json', ...replayRequest.safeParse(asked) }), file: JSON.stringify(file) }
}

type Caller = { env: Env; agents: AgentRegistry; principal: Principal; computing: Computing; is_file?: boolean }

const callerOf = ({ env, var: { agents, principal } }: Pick<Context<AuthEnv>, 'env' | 'var'>) => ({ env, agents, principal })

/** Decides on them one after the other, each with its own model calls. */
async function replayAll(
  recordings: readonly Recording[],
  asked: ReplayQuery,
  caller: Caller,
): Promise<{ scope: string; report: ReplayReport }[]> {
  if (recordings.length > 1 && asked.budget !== undefined)
    throw invalid('The trace went through several scopes, and a budget is for one: name one of them as `scope`.')
  const reports = []
  for (const recording of recordings) reports.push({ scope: recording.scope, report: await replayOf(recording, asked, caller) })
  return reports
}

async function replayOf(
  recording: Recording,
  asked: ReplayQuery,
  { env, agents, principal, computing, is_file = false }: Caller,
): Promise<ReplayReport> {
  const bases = Object.values(recording.parts).filter(isBasis)
  const settings = [recording.settings, ...bases.map((basis) => basis.settings)]
  const resolved = await resolveChanges(asked, { env, agents, principal, scope: recording.scope, is_file, settings })
  const host = hostOf(env, { agents, computing, is_foreign: is_file || isForeign(asked) })
  return resolved ? whatIf(recording, resolved, host) : replay(recording, host)
}
