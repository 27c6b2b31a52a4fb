import { useSignal } from '@preact/signals'
import type { z } from 'zod'
import type { evaluation } from '../../../../src/contract/reports/reflex-report.ts'
import type { RangeReport } from '../../../../src/contract/reports/replay.ts'
import { part, post, requestText, useGet, type Answer } from '../../api/index.ts'
import { failed } from '../../api/problem.ts'
import { useAction } from '../../api/use-action.ts'
import { ErrorBox } from '../../ui/feedback.tsx'
import { Field, Select } from '../../ui/form.tsx'
import { count, percent } from '../../ui/numbers.ts'
import { Section } from '../../ui/page.tsx'
import { Fact, Facts, Lines, visible } from '../../ui/text.tsx'
import { RangeView } from '../trace/report.tsx'
import { actionText } from '../trace/spans.ts'
import type { Reflex } from './page.tsx'

type Evaluation = z.infer<typeof evaluation>
const windows: Record<string, [text: string, ms: number]> = {
  '1h': ['the last hour', 3_600_000],
  '24h': ['the last day', 86_400_000],
  '7d': ['the last 7 days', 604_800_000],
  '30d': ['the last 30 days', 2_592_000_000],
}

/** Tries the reflex, or a change of it, on what a scope has recorded. */
export function Try({ reflex }: { reflex: Reflex }) {
  const used = useGet<{ scopes: { scope: string }[] }>(`/v1/reflexes/${part(reflex.id)}/metrics`).value
  const scope = useSignal('')
  const range = useSignal('24h')
  const names = [...new Set(used?.scopes.map((one) => one.scope))]
  const chosen = scope.value || (names[0] ?? '')
  return (
    <>
      <Section title="On what was recorded">
        <div class="card actions">
          <label class="inline">
            Scope
            <input list="scopes-of-reflex" value={chosen} onInput={({ currentTarget }) => (scope.value = currentTarget.value)} />
            <datalist id="scopes-of-reflex">
              {names.map((name) => (
                <option key={name} value={name} />
              ))}
            </datalist>
          </label>
          <Select
            label="Recordings of"
            value={range.value}
            options={Object.fromEntries(Object.entries(windows).map(([value, [text]]) => [value, text]))}
            onChange={(value) => (range.value = value)}
          />
        </div>
      </Section>
      <Evaluate version={`${reflex.id}@${reflex.version}`} scope={chosen} window={range.value} />
      <Change reflex={reflex} scope={chosen} range={range.value} />
    </>
  )
}

function Evaluate({ version, scope, window }: { version: string; scope: string; window: string }) {
  const report = useSignal<Evaluation | null>(null)
  const { run, busy, problem } = useAction((_, left) => post<Evaluation>(`/v1/reflexes/${part(version)}/evaluate`, { scope, window }, left))
  const evaluate = async () => {
    const answer = await run(undefined)
    if (answer.ok) report.value = answer.value
  }
  return (
    <Section
      title={`As it is: ${visible(version)}`}
      actions={
        <button type="button" disabled={busy || scope === ''} onClick={() => void evaluate()}>
          {busy ? 'Evaluating …' : 'Evaluate'}
        </button>
      }
    >
      {problem && <ErrorBox problem={problem} />}
      {report.value ? (
        <Evaluated report={report.value} />
      ) : (
        <p class="quiet">Runs it on the recorded contexts, without acting, and compares it with what was decided.</p>
      )}
    </Section>
  )
}

function Evaluated({ report: { contexts, fires, agreement, missed, errors, disagreements, truncated } }: { report: Evaluation }) {
  const { agreed, disagreed, not_compared, rate } = agreement
  return (
    <div class="card" role="status">
      <Facts>
        <Fact name="Contexts">{count(contexts.recorded + contexts.rebuilt)}</Fact>
        <Fact name="Fires">{count(fires)}</Fact>
        <Fact name="Agreement">
          {percent(rate)} ({count(agreed)} of {count(agreed + disagreed)}, {count(not_compared)} not comparable)
        </Fact>
        <Fact name="Passed although something was done">{count(missed)}</Fact>
        <Fact name="Errors">{count(errors.length)}</Fact>
      </Facts>
      {truncated && <p class="wait">There were more contexts than one evaluation reads.</p>}
      {disagreements.length > 0 && (
        <Lines
          of={disagreements.map(
            ({ event_id, action, decided }) =>
              `${event_id}: it would ${actionText(action)}; decided was ${decided.map(actionText).join(', ') || 'nothing'}`,
          )}
        />
      )}
    </div>
  )
}

function Change({ reflex, scope, range }: { reflex: Reflex; scope: string; range: string }) {
  const code = useSignal(reflex.code ?? '')
  const reports = useSignal<RangeReport[]>([])
  const { run, busy, problem } = useAction((asked: object, left) => replay(scope, asked, left))
  /** A long range is decided again in parts, which are shown as they come. */
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    reports.value = []
    const until = Date.now()
    const asked = {
      since: new Date(until - (windows[range]?.[1] ?? 0)).toISOString(),
      until: new Date(until).toISOString(),
      mode: 'what_if',
      changes: { reflex_code: { [reflex.id]: code.value } },
    }
    for (let cursor: string | null | undefined; cursor !== null;) {
      const answer = await run(cursor === undefined ? asked : { ...asked, cursor })
      if (!answer.ok) return
      reports.value = [...reports.value, answer.value]
      cursor = answer.value.next_cursor
    }
  }
  return (
    <Section title="What if its code were another">
      <form class="stack" onSubmit={(event) => void submit(event)}>
        <Field label="Changed code" rows={16} value={code.value} onInput={(text) => (code.value = text)} />
        <button type="submit" disabled={busy || scope === ''}>
          {busy ? 'Deciding again …' : 'Decide again'}
        </button>
      </form>
      {problem && <ErrorBox problem={problem} />}
      {reports.value.map((report, index) => (
        <RangeView key={index} report={report} part={reports.value.length === 1 && report.next_cursor === null ? null : index + 1} />
      ))}
    </Section>
  )
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
    return 'report' in last ? { ok: true, value: last.report } : failed(0, 'The replay failed', last.error)
  } catch {
    // The server may end in the middle of a line, or before the first.
    return failed(0, 'The replay failed', 'The answer ended early.')
  }
}
