import { z } from '@hono/zod-openapi'
import { deploymentHider } from '../../base/secrets.ts'
import { replayMode, replayReport } from '../../contract/reports/replay.ts'
import { scopeName } from '../../core/event.ts'
import { isolateSandbox } from '../../reflexes/isolate-sandbox.ts'
import { openRecording, RECORDING_SCHEMA } from '../../replay/recording.ts'
import { replay } from '../../replay/replay.ts'
import { cleanerOf, type ReplayHost } from '../../replay/source.ts'
import { deploymentMask } from '../../traces/keyed-hash.ts'
import type { AgentRegistry } from '../../agent/registry.ts'
import type { Env } from '../../env.ts'
import { guard, json, jsonRequest, jsonText, problems, resource, routes } from '../describe/describe.ts'
import { invalid } from '../problems/refusals.ts'
import { exportTrace } from './export.ts'
import { scopeOfTrace } from './trace-scope.ts'

const route = routes('Traces')

const tracePath = z.object({
  trace_id: z
    .string()
    .regex(/^[0-9a-f]{32}$/, 'a trace id is 32 lower-case hex digits')
    .describe('32 hex digits, as in W3C trace context.'),
})
const ofScope = z.object({
  scope: scopeName
    .optional()
    .describe('The scope whose log has the trace. Needed if the trace has no event, or went through several scopes.'),
})
const recording = z
  .looseObject({ schema: z.int(), trace_id: z.string(), scope: z.string(), sha256: z.string() })
  .describe(`A self-contained file of schema version ${RECORDING_SCHEMA}. \`sha256\` is over the canonical JSON of its other fields.`)

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
    'It asks no model, calls no tool and changes nothing.',
  ...guard({ roles: ['viewer'], body: 'optional' }),
  request: {
    params: tracePath,
    query: ofScope,
    body: jsonRequest(z.strictObject({ mode: replayMode.default('pinned') }), { mode: 'pinned' }),
  },
  responses: { 200: json(replayReport, 'The comparison.'), ...problems(400, 404, 413, 415) },
})

const replayedFile = route('post /v1/replay', 'replayFile', 'Replay an exported trace', {
  description: 'The body is a file of `GET /v1/traces/{trace_id}/export`. A file that was changed or cut off is rejected.',
  ...guard({ roles: ['viewer'], body: 'json' }),
  request: {
    body: {
      required: true,
      content: {
        'application/json': {
          schema: recording,
          example: { schema: RECORDING_SCHEMA, trace_id: 'a'.repeat(32), scope: 'default', sha256: 'b'.repeat(64) },
        },
      },
    },
  },
  responses: { 200: json(replayReport, 'The comparison.'), ...problems(400, 413, 415) },
})

const hostOf = (env: Env, agents: AgentRegistry): ReplayHost => ({
  agents,
  sandbox: isolateSandbox,
  cleaner: cleanerOf((value) => deploymentHider(env).value(value), deploymentMask(env)),
})

export const traceReplayRoutes = resource()
  .openapi(exported, async (c) => {
    const { trace_id } = c.req.valid('param')
    const scope = await scopeOfTrace(c.env, c.var.principal, trace_id, c.req.valid('query').scope)
    const found = await exportTrace(c.env, scope, trace_id)
    return jsonText<z.infer<typeof recording>>(JSON.stringify(found))
  })
  .openapi(replayed, async (c) => {
    const { trace_id } = c.req.valid('param')
    const scope = await scopeOfTrace(c.env, c.var.principal, trace_id, c.req.valid('query').scope)
    const found = await exportTrace(c.env, scope, trace_id)
    return c.json(await replay(found, hostOf(c.env, c.var.agents)), 200)
  })
  .openapi(replayedFile, async (c) => {
    const opened = await openRecording(await c.req.text())
    if (!opened.ok) throw invalid(opened.detail)
    return c.json(await replay(opened.recording, hostOf(c.env, c.var.agents)), 200)
  })
