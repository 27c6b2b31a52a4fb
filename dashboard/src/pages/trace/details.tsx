import { useSignal } from '@preact/signals'
import type { Span } from '../../../../src/contract/reports/trace.ts'
import type { EventRecord } from '../../../../src/contract/event-record.ts'
import type { DecisionWhy, Points } from '../../../../src/features/learning/contract/why.ts'
import { get, part, useGet } from '../../api/index.ts'
import { useAction } from '../../api/use-action.ts'
import { ErrorBox, Loaded } from '../../ui/feedback.tsx'
import { Json } from '../../ui/json.tsx'
import { ScopeLink, scopeLink, TraceLink } from '../../ui/links.tsx'
import { count, usd } from '../../ui/numbers.ts'
import { ListedOrigins, Origins, type ShownCall } from '../../ui/origins.tsx'
import { Section } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { Status } from '../../ui/status.tsx'
import { Fact, Facts } from '../../ui/facts.tsx'
import { Lines, Text, visible } from '../../ui/text.tsx'
import { Clock, duration } from '../../ui/time.tsx'
import { below, needsOf, numberOf, reasonsOf, scoreOf, textOf } from './spans.ts'

type Check = { check: string; passed: boolean; detail: string }
type Stage = { stage: string; status: string; checks?: Check[] }
type GateDecided = { verdict?: string; stages?: Stage[] }

/** The stages of a gate in their order, each with what it checked. */
function Gate({ decision: { stages = [] } }: { decision: GateDecided }) {
  return (
    <div>
      <h3>Stages</h3>
      <ol>
        {stages.map(({ stage, status, checks = [] }) => (
          <li key={stage}>
            {stage}: <Status status={status} />
            {checks.length > 0 && (
              <ul>
                {checks.map(({ check, passed, detail }) => (
                  <li key={check + detail} class={passed ? '' : 'bad'}>
                    {passed ? '' : 'Failed: '}
                    <Text text={`${check}: ${detail}`} most={500} />
                  </li>
                ))}
              </ul>
            )}
          </li>
        ))}
      </ol>
    </div>
  )
}

type DetailedEntry = ShownCall & { seq: number; kind: string; context?: unknown; decision?: GateDecided; prompt?: string[] }
/** `event`: what the span follows from. */
type DetailsProps = { span: Span; event: Span | undefined; trace_id: string }

/** Everything about one span: what went in, what came out, its cost, score and reasons. */
export function Details({ span, event, trace_id }: DetailsProps) {
  const scope = textOf(span, 'reflex.scope') ?? ''
  const seq = numberOf(span, 'reflex.log_seq')
  const logged = useGet<{ items: DetailedEntry[] }>(
    seq === null ? null : `/v1/scopes/${part(scope)}/log?after=${seq - 1}&before=${seq + 1}`,
  )
  const entry = logged.value?.items[0]
  const { inputs, outputs, rest } = grouped(span)
  return (
    <Section title={visible(span.name)} actions={<TraceLink id={trace_id} span={span.span_id} text="Link to this span" />}>
      <div class="card details">
        <Head span={span} scope={scope} seq={seq} />
        <Reasons span={span} />
        {entry?.decision?.stages && <Gate decision={entry.decision} />}
        {entry?.kind === 'effect-started' && <Origins call={entry} />}
        {span.kind === 'run' && <RunOrigins run={span} scope={scope} />}
        {span.kind === 'event' && <EventBody of={eventPath(scope, span)} />}
        {span.kind === 'reflex' && event && <Sure of={`${eventPath(scope, event)}/why`} span={span} />}
        {entry?.context !== undefined && entry.context !== null && <Part name="Context that it saw" value={entry.context} open={0} />}
        {entry?.prompt && <Prompt trace_id={trace_id} scope={scope} parts={entry.prompt} />}
        {Object.keys(inputs).length > 0 && <Part name="Inputs" value={inputs} open={3} />}
        {Object.keys(outputs).length > 0 && <Part name="Outputs" value={outputs} open={3} />}
        <Part name="Other attributes" value={rest} open={0} />
        <Loaded data={logged}>
          {({ items: [first] }) => first && <Part name={`Log entry ${first.seq}: ${first.kind}`} value={first} open={0} />}
        </Loaded>
      </div>
    </Section>
  )
}

/** The arguments of each call of a run, with what named them. Calls of skills within it count. */
function RunOrigins({ run, scope }: { run: Span; scope: string }) {
  const seqs = below(run).flatMap((span) => (span.kind === 'effect' ? (numberOf(span, 'reflex.log_seq') ?? []) : []))
  const [first] = seqs
  return first === undefined ? null : (
    <ListedOrigins at={`/v1/scopes/${part(scope)}/log?kind=effect-started&limit=1000&after=${first - 1}`} seqs={seqs} />
  )
}

function Head({ span, scope, seq }: { span: Span; scope: string; seq: number | null }) {
  const tokens = (numberOf(span, 'gen_ai.usage.input_tokens') ?? 0) + (numberOf(span, 'gen_ai.usage.output_tokens') ?? 0)
  const cost = numberOf(span, 'reflex.cost_usd')
  const fuel = numberOf(span, 'reflex.fuel')
  return (
    <Facts>
      <Fact name="Status">
        <Status status={span.status} /> <span class="quiet">{span.kind}</span>
      </Fact>
      <Fact name="Started">
        <Clock at={span.started_at} />
      </Fact>
      <Fact name="Took">{span.duration_ms === null ? 'not ended' : duration(span.duration_ms)}</Fact>
      <Fact name="Scope">
        <ScopeLink scope={scope} />
        {seq !== null && (
          <>
            {' '}
            (<a href={`${scopeLink(scope)}?tab=context&at=${seq}`}>its context then</a>)
          </>
        )}
      </Fact>
      {tokens > 0 && <Fact name="Tokens">{count(tokens)}</Fact>}
      {(cost !== null || tokens > 0) && <Fact name="Cost">{cost === null ? 'price unknown' : usd(cost)}</Fact>}
      {fuel !== null && <Fact name="Fuel">{count(fuel)}</Fact>}
    </Facts>
  )
}

function Reasons({ span }: { span: Span }) {
  const reasons = reasonsOf(span)
  const needs = needsOf(span)
  const score = scoreOf(span)
  return (
    <>
      {reasons.length > 0 && (
        <div>
          <h3>Why</h3>
          {reasons.map((reason) => (
            <p key={reason}>
              <Text text={reason} most={2000} />
            </p>
          ))}
        </div>
      )}
      {score && (
        <p>
          Score <b>{score.score}</b>, of {score.tau ?? '–'} that it needs.
        </p>
      )}
      {needs.length > 0 && (
        <div>
          <h3>To pass</h3>
          <Lines of={needs} />
        </div>
      )}
    </>
  )
}

function Part({ name, value, open }: { name: string; value: unknown; open: number }) {
  return (
    <div>
      <h3>{visible(name)}</h3>
      <Json value={value} open={open} label={name} />
    </div>
  )
}

const eventPath = (scope: string, event: Span): string =>
  `/v1/scopes/${part(scope)}/events/${part(textOf(event, 'messaging.message.id') ?? '')}`

/** Why a reflex was sure of its decision or left the event, by what spoke for and against it. */
function Sure({ of, span }: { of: string; span: Span }) {
  const why = useGet<DecisionWhy>(of)
  return (
    <Loaded data={why}>
      {({ reflexes }) =>
        reflexes.map(
          ({ id, version, reasons, points, disagreed }) =>
            id === textOf(span, 'reflex.id') &&
            version === numberOf(span, 'reflex.version') && (
              <div key={version}>
                <Lines of={reasons} />
                {points && <Spoke {...points} />}
                {disagreed && (
                  <p>
                    Last wrong: <TraceLink id={disagreed.trace_id} text={visible(disagreed.event_id)} />
                  </p>
                )}
              </div>
            ),
        )
      }
    </Loaded>
  )
}

function Spoke({ best, second }: Points) {
  const rows = [...new Set([...best.spoke, ...second.spoke].map(({ says }) => says))]
  const column = ({ decision, points, spoke }: Points['best']) => ({
    title: `${count(points)} points for ${visible(decision ?? 'the slow path')}`,
    cell: (row: string) => count(spoke.find(({ says }) => says === row)?.points),
    numeric: true,
  })
  return (
    <Table
      label="What spoke for and against"
      rows={rows}
      keyOf={(row) => row}
      columns={[{ title: 'The event', of: (row) => row }, column(best), column(second)]}
    />
  )
}

function EventBody({ of }: { of: string }) {
  const record = useGet<EventRecord>(of)
  return <Loaded data={record}>{({ event }) => <Part name="Event" value={event} open={1} />}</Loaded>
}

type Recording = { scope: string; parts?: Record<string, unknown> }
type Exported = Recording & { recordings?: Recording[] }

/** The messages are stored once, by their hashes: the export of the trace has them. */
function Prompt({ trace_id, scope, parts }: { trace_id: string; scope: string; parts: string[] }) {
  const messages = useSignal<unknown[] | null>(null)
  const { run, busy, problem } = useAction(async () => {
    const answer = await get<Exported>(`/v1/traces/${trace_id}/export?scope=${part(scope)}`)
    if (answer.ok) {
      const all = [answer.value, ...(answer.value.recordings ?? [])].map((recording) => recording.parts ?? {})
      messages.value = parts.map((hash) => all.find((one) => hash in one)?.[hash] ?? 'not kept')
    }
    return answer
  })
  if (messages.value) return <Part name="Prompt" value={messages.value} open={2} />
  return (
    <div>
      <button type="button" disabled={busy} onClick={() => void run(undefined)}>
        Show the prompt ({parts.length} messages)
      </button>
      <ErrorBox problem={problem} />
    </div>
  )
}

const INPUTS = /\.(arguments|inputs|considered|saw|why|patch|key|value|call|event\.(type|source|via)|goal)$/
const OUTPUTS = /\.(result|messages|finish_reasons|outputs|acts|action|outcome|answers|decision|agreed|slots|cards|decision_reason|status)$/

function grouped({ attributes }: Span) {
  const groups = { inputs: {}, outputs: {}, rest: {} } as Record<'inputs' | 'outputs' | 'rest', Record<string, unknown>>
  for (const [name, value] of Object.entries(attributes)) {
    const group = INPUTS.test(name) ? groups.inputs : OUTPUTS.test(name) ? groups.outputs : groups.rest
    group[name] = value
  }
  return groups
}
