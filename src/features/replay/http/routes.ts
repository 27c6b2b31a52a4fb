import type { Context } from 'hono'
import type { AgentRegistry } from '../../../agent/registry.ts'
import type { Computing } from '../../../base/computing.ts'
import { isJsonFields, jsonValue } from '../../../base/json.ts'
import { warn } from '../../../base/warn.ts'
import { exportFile, replay as replayTrace, replayFile, replayRequest } from '../operations/replay.ts'
import type { ReplayReport } from '../contract/replay.ts'
import type { Principal } from '../../../contract/principal.ts'
import type { Env } from '../../../env.ts'
import { bundle, openRecordings, type Recording } from '../recording.ts'
import { mergeReports } from '../what-if/merge.ts'
import { replay } from '../replay.ts'
import { isBasis, isForeign } from '../what-if/changes.ts'
import { whatIf } from '../what-if/what-if.ts'
import { withComputing } from '../../../http/auth/computing.ts'
import type { AuthEnv } from '../../../http/auth/middleware.ts'
import { jsonText, resource, serve } from '../../../http/describe/operation.ts'
import { invalid, refuseInvalid } from '../../../http/problems/refusals.ts'
import { resolveChanges, showsMore, type ReplayQuery } from './changes.ts'
import { exportTrace, recordingsOf } from '../../traces/http/export.ts'
import { hostOf } from './host.ts'
import { logReplay } from './log-replay.ts'
import { rangeReplayRoutes } from './range.ts'
import { scopesOfTrace } from '../../traces/http/trace-scope.ts'

const traceReplayRoutes = resource().openapiRoutes([
  serve(exportFile, async (c, { params: { trace_id }, query: { scope } }) => {
    const scopes = await scopesOfTrace(c.env, c.var.principal, trace_id, scope)
    const found = await exportTrace(c.env, scopes, { trace_id, contexts: true }, { key: c.var.principal })
    return jsonText(JSON.stringify(await bundle(trace_id, found)))
  }),
  serve(replayTrace, async (c, { params: { trace_id }, query, body: asked }) => {
    const scopes = await scopesOfTrace(c.env, c.var.principal, trace_id, query.scope)
    const reports = await withComputing(c.var.principal, async (computing) => {
      const found = await recordingsOf(c.env, scopes, { trace_id, contexts: showsMore(asked) })
      return replayAll(found, asked, { ...callerOf(c), computing })
    })
    for (const { scope, report } of reports) {
      const { mode, changes_hash, compared, changed, unknown } = report
      await logReplay(c, { mode, of: { trace_id }, changes_hash, compared, changed, unknown: unknown.length }, scope)
    }
    return mergeReports(reports.map(({ report }) => report))
  }),
  serve(replayFile, async (c) => {
    const { file, ...asked } = askedOf(await c.req.text())
    const reports = await withComputing(c.var.principal, async (computing) => {
      const opened = await openRecordings(file, (steps) => computing.run(steps))
      if (!opened.ok) throw invalid(opened.detail)
      return replayAll(opened.recordings, asked, { ...callerOf(c), computing, is_file: true }).catch(unreadable)
    })
    return mergeReports(reports.map(({ report }) => report))
  }),
])

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
