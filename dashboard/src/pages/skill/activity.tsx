import { useSignal } from '@preact/signals'
import type { Span, Trace, TraceSummary } from '../../../../src/contract/reports/trace.ts'
import { query, useGet } from '../../api/index.ts'
import { Loaded } from '../../ui/feedback.tsx'
import { TraceLink } from '../../ui/links.tsx'
import { Section } from '../../ui/page.tsx'
import { Status } from '../../ui/status.tsx'
import { Lines, Text, visible } from '../../ui/text.tsx'
import { duration, Time } from '../../ui/time.tsx'
import { Entries } from '../reflex/entries.tsx'
import { reasonsOf, textOf } from '../trace/spans.ts'

type Need = string | { message: string }
type Stage = { stage: string; status: string; checks: { check: string; passed: boolean; detail: string }[] }
type Decision = { verdict: string; stages: Stage[]; to_pass?: Need[]; needs?: Need[]; score: { score: number; tau?: number } | null }
type Entry = {
  seq: number
  at: string
  trace_id: string
  span_id: string
  skill_id: string
  version: string
  why: string
  dry_run: boolean
  decision: Decision
}

/** The latest proposals of a skill in a scope: what the gate decided, and the run step by step. */
export function Activity({ id }: { id: string }) {
  const traces = useGet<{ items: TraceSummary[] }>(`/v1/traces${query({ skill: id, limit: 100 })}`)
  return (
    <Section title="Gate decisions and runs">
      <Loaded data={traces}>
        {({ items }) => (
          <Entries<Entry>
            scopes={[...new Set(items.flatMap(({ scopes }) => scopes))]}
            kinds={{ 'skill-decided': 'Gate decisions' }}
            match={({ skill_id }) => skill_id === id}
          >
            {(entries) => entries.map((entry) => <Proposal key={entry.seq} entry={entry} />)}
          </Entries>
        )}
      </Loaded>
    </Section>
  )
}

function Proposal({ entry: { at, trace_id, span_id, skill_id, version, why, dry_run, decision } }: { entry: Entry }) {
  const isOpen = useSignal(false)
  const refused = decision.stages.find(({ status }) => status === 'failed')
  const reasons = refused?.checks.filter(({ passed }) => !passed).map(({ check, detail }) => `${check}: ${detail}`) ?? []
  return (
    <article class="card" aria-label={`Proposal of version ${version}`}>
      <p>
        <Time at={at} /> <Status status={decision.verdict} />
        {refused && (
          <>
            {' '}
            at the stage <b>{refused.stage}</b>
          </>
        )}
        {decision.score && `, score ${decision.score.score}`}
        {dry_run && ', a dry run'} · version {visible(version)} · “<Text text={why} most={160} />”{' '}
        <TraceLink id={trace_id} span={span_id} />
      </p>
      {reasons.length > 0 && <Lines of={reasons} />}
      <details onToggle={({ currentTarget }) => (isOpen.value = currentTarget.open)}>
        <summary>The run, step by step</summary>
        {isOpen.value && <Runs trace_id={trace_id} gate={span_id} skill_id={skill_id} />}
      </details>
    </article>
  )
}

function Runs({ trace_id, gate, skill_id }: { trace_id: string; gate: string; skill_id: string }) {
  const data = useGet<Trace>(`/v1/traces/${trace_id}`)
  return (
    <Loaded data={data}>
      {({ root }) => {
        const [run] = runsAfter(root, { gate, skill_id })
        return run ? <Run span={run} trace_id={trace_id} /> : <p class="quiet">It did not run.</p>
      }}
    </Loaded>
  )
}

/** The runs of a skill below its gate, or beside it. */
function runsAfter(span: Span, of: { gate: string; skill_id: string }): Span[] {
  const place = span.children.findIndex(({ span_id }) => span_id === of.gate)
  if (place < 0) return span.children.flatMap((child) => runsAfter(child, of))
  const isRun = (one: Span) => one.kind === 'run' && textOf(one, 'gen_ai.skill.name') === of.skill_id
  const below = (one: Span): Span[] => [...(isRun(one) ? [one] : []), ...one.children.flatMap(below)]
  return [...below(span.children[place] as Span), ...span.children.slice(place + 1).filter(isRun)]
}

function Run({ span, trace_id }: { span: Span; trace_id: string }) {
  return (
    <>
      <p>
        <Status status={textOf(span, 'reflex.run.status') ?? 'running'} />
        {span.duration_ms !== null && ` in ${duration(span.duration_ms)}`} <Text text={reasonsOf(span).join('; ')} most={400} />{' '}
        <TraceLink id={trace_id} span={span.span_id} text="Show" />
      </p>
      <ol>
        {span.children.map((step) => (
          <li key={step.span_id}>
            {visible(step.name)}: <code>{visible(textOf(step, 'gen_ai.tool.name') ?? '')}</code>{' '}
            <Status status={textOf(step, 'reflex.step.status') ?? step.status} />
            {step.duration_ms !== null && <span class="quiet"> {duration(step.duration_ms)}</span>}{' '}
            <Text text={reasonsOf(step).join('; ')} />
          </li>
        ))}
      </ol>
    </>
  )
}
