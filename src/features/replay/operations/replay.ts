import { z } from 'zod'
import { limits } from '../../../base/limits.ts'
import { scopeName } from '../../../core/event.ts'
import { NDJSON, operations } from '../../../contract/operation.ts'
import { described, plainSchema } from '../../../contract/plain-schema.ts'
import { rangeProgress, rangeReport, RECORDING_SCHEMA, replayMode, replayReport } from '../contract/replay.ts'
import { replayBudget, replayChanges } from '../contract/what-if.ts'
import { instant, scopePath, toolScope, traceId } from '../../../contract/operations/shared.ts'

const operation = operations({ tag: 'Traces', roles: ['viewer'] })

const recording = z
  .looseObject({ schema: z.int(), trace_id: z.string(), scope: z.string().optional(), sha256: z.string() })
  .describe(
    `A self-contained file of schema version ${RECORDING_SCHEMA}. \`sha256\` is over the canonical JSON of its other fields. ` +
      'If the trace went through several scopes, `recordings` has one file for each.',
  )

const params = z.object({ trace_id: traceId.describe('32 hex digits, as in W3C trace context.') })
const ofScope = z.object({
  scope: scopeName
    .optional()
    .describe('The scope whose log has the trace. By default those of its events and calls, once they are replicated.'),
})

export const exportFile = operation('get /v1/traces/{trace_id}/export', 'exportTrace', 'Export a trace as one file', {
  description:
    'Log entries, events, settings, code of reflexes, manifests and messages of prompts: all that the decisions of the trace were made from, without secrets. ' +
    '`POST /v1/replay` decides again from it.',
  params,
  query: ofScope,
  answers: { 200: [recording, 'The file.'] },
  problems: [404],
})

/** The fields that all requests for a replay have in common. */
const replayFields = {
  mode: replayMode.default('pinned'),
  changes: replayChanges.optional().describe('Needed by `what_if`, and by nothing else.'),
  budget: replayBudget.optional(),
}
export const replayRequest = z.strictObject(replayFields)

export const replay = operation('post /v1/traces/{trace_id}/replay', 'replayTrace', 'Replay a trace', {
  description:
    'Decides again from the log, with the code of this deployment, and compares every decision and output with what was recorded. ' +
    'With `mode: what_if`, the named `changes` take the place of what was recorded. It calls no tool and changes nothing. ' +
    'It asks no model, except within a `budget`, which needs the role `operator`.',
  params,
  query: ofScope,
  body: replayRequest,
  recursive: true,
  takes: 'defaulted',
  example: { mode: 'what_if', changes: { settings: { tau: 0.9 } } },
  answers: { 200: [replayReport, 'The comparison.'] },
  problems: [404],
  mcp: {
    name: 'replay_trace',
    title: 'What if',
    description:
      'Decides again about a trace, without effects. `pinned` compares with this deployment; `what_if` makes the named changes first, such as other settings or reflex code.',
    input: {
      trace_id: traceId,
      scope: toolScope,
      mode: z.enum(['pinned', 'what_if']).default('pinned'),
      changes: replayChanges.optional(),
    },
  },
})

const fileRequest = z.union([recording, replayRequest.extend({ recording })])

export const replayFile = operation('post /v1/replay', 'replayFile', 'Replay an exported trace', {
  description:
    'The body is a file of `GET /v1/traces/{trace_id}/export`, or `{"recording": FILE, "mode": "what_if", "changes": …}`. It may be compressed with ' +
    `\`Content-Encoding: gzip\`, and has at most ${limits.file_bytes} bytes uncompressed. A file that was changed or cut off is rejected as a whole.`,
  body: described<z.input<typeof fileRequest>>(plainSchema(fileRequest)),
  takes: 'file',
  example: { schema: RECORDING_SCHEMA, trace_id: 'a'.repeat(32), scope: 'default', sha256: 'b'.repeat(64) },
  answers: { 200: [replayReport, 'The comparison.'] },
})

/** Bounds of a request for a range: longer ones end with a cursor. */
export const rangeLimits = { entries: 200_000, ms: 60_000 }

/** The answer as lines: progress after each part, and a report or an error at last. */
export const rangeLines = z.union([
  z.object({ progress: rangeProgress }),
  z.object({ report: rangeReport }),
  z.object({ error: z.string(), instance: z.string().optional() }),
])

export const replayRange = operation('post /v1/scopes/{scope}/replay', 'replayScope', 'Replay a time range of a scope', {
  description:
    'Decides again on everything that the log of the scope has between two times, pinned or with `changes`, and reports how many decisions are the same, changed ' +
    'or unknown, usage and effects on both sides, and the ten most telling changes. It calls no tool and changes nothing; the log gets one entry `replay-done`. ' +
    `A request reads up to ${rangeLimits.entries} entries or ${rangeLimits.ms / 1000} s; \`next_cursor\` continues it. With \`Accept: application/x-ndjson\` the answer is a stream of lines: ` +
    '`{"progress": …}` after each part, and `{"report": …}` or `{"error": …}` at last.',
  scoped: true,
  params: scopePath,
  body: z.strictObject({
    ...replayFields,
    since: instant.describe('Log entries at or after this time.'),
    until: instant.optional().describe('Log entries before this time; now by default.'),
    cursor: z
      .string()
      .regex(/^\d{1,15}$/, 'pass the next_cursor of the report before')
      .optional(),
  }),
  recursive: true,
  example: {
    since: '2026-11-21T00:00:00Z',
    until: '2026-11-22T00:00:00Z',
    mode: 'what_if',
    changes: { settings: { tau: 0.9 } },
  },
  answers: { 200: [rangeReport, 'The report.', { [NDJSON]: rangeLines }] },
})
