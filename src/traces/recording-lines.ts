import { jsonLines, readJsonLines } from '../base/json-lines.ts'
import type { LogRange, OfTrace, RangeRecording, ScopeApi, TraceRecording } from '../contract/scope-api.ts'

type Scope = Pick<ScopeApi, 'recording'>

/** The scope's part of a trace; null if its log does not name the trace. */
export const traceRecording = async (scope: Scope, of: OfTrace): Promise<TraceRecording | null> =>
  (await read(scope, of)) as TraceRecording | null

/** The same, with the way from its entries to signed heads. */
export async function signedRecording(scope: Pick<ScopeApi, 'signedRecording'>, { trace_id }: OfTrace): Promise<TraceRecording | null> {
  const lines = await scope.signedRecording(trace_id)
  return lines === null ? null : ((await readJsonLines(lines)) as TraceRecording)
}

export const rangeRecording = async (scope: Scope, of: LogRange): Promise<RangeRecording> => (await read(scope, of)) as RangeRecording

async function read(scope: Scope, of: OfTrace | LogRange): Promise<object | null> {
  const lines = await scope.recording(of)
  return lines === null ? null : readJsonLines(lines)
}

/** Writes a recording as its reader takes it. Others are served between two texts. */
export function streamOfLines(recording: object): ReadableStream<Uint8Array> {
  const texts = jsonLines(recording)
  const encoder = new TextEncoder()
  return new ReadableStream({
    type: 'bytes',
    async pull(controller) {
      await scheduler.wait(0)
      const { done, value } = texts.next()
      if (done) controller.close()
      else controller.enqueue(encoder.encode(value))
    },
  })
}
