import { useGet, usePages } from '../../api/index.ts'
import type { Span, Trace, TraceSummary } from '../../../../src/contract/reports/trace.ts'
import { query } from '../../api/index.ts'
import { Empty, Loaded, Loading, ErrorBox } from '../../ui/feedback.tsx'
import { ScopeLink, TraceLink } from '../../ui/links.tsx'
import { Section } from '../../ui/page.tsx'
import { Status } from '../../ui/status.tsx'
import { Text, visible } from '../../ui/text.tsx'
import { duration, Time } from '../../ui/time.tsx'
import { needsOf, numberOf, reasonsOf, scoreOf, textOf } from '../trace/spans.ts'

const PAGE = 10

/** The proposals of a skill with what the gate decided, and the runs step by step. */
export function Activity({ id }: { id: string }) {
  const traces = usePages<TraceSummary>(`/v1/traces${query({ skill: id, limit: PAGE })}`)
  return (
    <Section title="Gate decisions and runs">
      {traces.problem && <ErrorBox problem={traces.problem} onRetry={traces.reload} />}
      {!traces.items && !traces.problem && <Loading />}
      {traces.items?.length === 0 && !traces.more && (
        <Empty title="It was not proposed yet.">
          <p>Propose it here, or wait for a model, a reflex or a program to do so.</p>
        </Empty>
      )}
      {traces.items?.map((summary) => (
        <Proposals key={summary.trace_id} id={id} summary={summary} />
      ))}
      {traces.more && (
        <button type="button" disabled={traces.loading} onClick={traces.loadMore}>
          Older ones
        </button>
      )}
    </Section>
  )
}

function Proposals({ id, summary: { trace_id, scopes, started_at } }: { id: string; summary: TraceSummary }) {
  const data = useGet<Trace>(`/v1/traces/${trace_id}`)
  return (
    <article class="card" aria-label={`Trace ${trace_id}`}>
      <p>
        <Time at={started_at} /> in{' '}
        {scopes.map((scope) => (
          <ScopeLink key={scope} scope={scope} />
        ))}{' '}
        · <TraceLink id={trace_id} />
      </p>
      <Loaded data={data}>{({ root }) => all(root, id).map((span) => <One key={span.span_id} span={span} trace_id={trace_id} />)}</Loaded>
    </article>
  )
}

/** The spans of this skill that say something by themselves, in the order of the tree. */
function all(span: Span, id: string): Span[] {
  const isOne = ['gate', 'approval', 'run'].includes(span.kind) && textOf(span, 'gen_ai.skill.name') === id
  return [...(isOne ? [span] : []), ...span.children.flatMap((child) => all(child, id))]
}

function One({ span, trace_id }: { span: Span; trace_id: string }) {
  if (span.kind === 'run') return <Run span={span} trace_id={trace_id} />
  if (span.kind === 'approval')
    return (
      <p>
        Approval: <Status status={textOf(span, 'reflex.approval.status') ?? 'waiting'} />{' '}
        <TraceLink id={trace_id} span={span.span_id} text="Show" />
      </p>
    )
  const score = scoreOf(span)
  const stage = textOf(span, 'reflex.stage')
  return (
    <div>
      <p>
        Gate: <Status status={textOf(span, 'reflex.verdict') ?? 'refused'} />
        {stage !== null && (
          <>
            {' '}
            at the stage <b>{visible(stage)}</b>
          </>
        )}
        {score && `, score ${score.score} of ${score.tau ?? '–'}`}. <Text text={reasonsOf(span).join('; ')} most={400} />{' '}
        <TraceLink id={trace_id} span={span.span_id} text="Show" />
      </p>
      {needsOf(span).length > 0 && (
        <ul>
          {needsOf(span).map((need) => (
            <li key={need}>
              <Text text={need} most={500} />
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}

function Run({ span, trace_id }: { span: Span; trace_id: string }) {
  const steps = span.children.filter(({ kind }) => kind === 'step' || kind === 'compensation')
  return (
    <div>
      <p>
        Run: <Status status={textOf(span, 'reflex.run.status') ?? 'running'} />
        {span.duration_ms !== null && ` in ${duration(span.duration_ms)}`} <Text text={reasonsOf(span).join('; ')} most={400} />{' '}
        <TraceLink id={trace_id} span={span.span_id} text="Show" />
      </p>
      <ol>
        {steps.map((step) => (
          <li key={step.span_id}>
            {visible(step.name)}: <code>{visible(textOf(step, 'gen_ai.tool.name') ?? '')}</code>{' '}
            <Status status={textOf(step, 'reflex.step.status') ?? step.status} />
            {step.duration_ms !== null && <span class="quiet"> {duration(step.duration_ms)}</span>}
            {(numberOf(step, 'reflex.step.attempts') ?? 1) > 1 && ` after ${numberOf(step, 'reflex.step.attempts')} attempts`}{' '}
            <Text text={reasonsOf(step).join('; ')} most={300} />
          </li>
        ))}
      </ol>
    </div>
  )
}
