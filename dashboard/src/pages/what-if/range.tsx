import { useSignal } from '@preact/signals'
import type { RangeReport } from '../../../../src/features/replay/contract/replay.ts'
import { part, requestText, type Answer } from '../../api/index.ts'
import { failed } from '../../api/problem.ts'
import { useAction } from '../../api/use-action.ts'
import { ErrorBox } from '../../ui/feedback.tsx'
import { RangeView } from '../trace/report.tsx'

/** Decides a range of a scope again, and what to show of it. */
export function useRange(scope: string) {
  const reports = useSignal<RangeReport[]>([])
  const { run, busy, problem } = useAction((asked: object, left) => replay(scope, asked, left))
  /** A long range is decided again in parts, which are shown as they come. */
  const decide = async (range: { since: string; until: string }, changes: object) => {
    reports.value = []
    const asked = { ...range, mode: 'what_if', changes }
    for (let cursor: string | null | undefined; cursor !== null;) {
      const answer = await run(cursor === undefined ? asked : { ...asked, cursor })
      if (!answer.ok) return
      reports.value = [...reports.value, answer.value]
      cursor = answer.value.next_cursor
    }
  }
  const shown = (
    <>
      <ErrorBox problem={problem} />
      {reports.value.map((report, index) => (
        <RangeView key={index} report={report} part={reports.value.length === 1 && report.next_cursor === null ? null : index + 1} />
      ))}
    </>
  )
  return { decide, busy, reports: shown }
}

/** The server ends a part after a minute. */
const PART_MS = 90_000

/** Decides a part of the range again. The answer is a stream: the server stops when it is left. */
async function replay(scope: string, asked: object, left: AbortSignal): Promise<Answer<RangeReport>> {
  const answer = await requestText('POST', `/v1/scopes/${part(scope)}/replay`, {
    body: asked,
    headers: { Accept: 'application/x-ndjson' },
    signal: left,
    patience_ms: PART_MS,
  })
  if (!answer.ok) return answer
  try {
    const last = JSON.parse(answer.value.trim().split('\n').at(-1) ?? '') as { report: RangeReport } | { error: string }
    return 'report' in last ? { ok: true, value: last.report } : failed('The replay failed', last.error)
  } catch {
    // The server may end in the middle of a line, or before the first.
    return failed('The replay failed', 'The answer ended early.')
  }
}
