import { useSignal } from '@preact/signals'
import { useLocation, useRoute } from 'preact-iso'
import { useEffect } from 'preact/hooks'
import type { ReplayReport } from '../../../../src/features/replay/contract/replay.ts'
import type { Span, TraceReport } from '../../../../src/contract/reports/trace.ts'
import { post, query, requestText, useGet, part, written } from '../../api/index.ts'
import { useAction } from '../../api/use-action.ts'
import { ErrorBox, Loaded } from '../../ui/feedback.tsx'
import { ScopeLink, AccountLink, dealLink } from '../../ui/links.tsx'
import { count, usd } from '../../ui/numbers.ts'
import { Page, Section } from '../../ui/page.tsx'
import { Facts } from '../../ui/facts.tsx'
import type { TableColumn } from '../../ui/table.tsx'
import { visible } from '../../ui/text.tsx'
import { duration } from '../../ui/time.tsx'
import { Chain } from './chain.tsx'
import { Details } from './details.tsx'
import { below, firstOf, pathTo, numberOf, textOf } from './spans.ts'
import { Waterfall } from './waterfall.tsx'
import { Report } from './report.tsx'
import { WhatIf } from './what-if.tsx'
import type { Deal } from '../../../../src/features/market/contract/deal.ts'

const DEAL = 'reflex.licence.deal'
/** A bought reflex acted. */
const isLicensed = (span: Span): boolean => textOf(span, DEAL) !== null

/** The deal under which a bought reflex acted, its seller, and the turn that the scope spared. */
function Licence({ span }: { span: Span }) {
  const id = textOf(span, DEAL) ?? ''
  const deal = useGet<Deal>(`/v1/market/deals/${part(id)}`).value
  const [calls, tokens, cost] = ['model_calls', 'tokens', 'usd'].map((name) => numberOf(span, `reflex.licence.saved_${name}`))
  return (
    <Section title="Licence">
      <p class="card">
        {visible(textOf(span, 'reflex.id') ?? '')} acted under a licence, by <a href={dealLink(id)}>this deal</a>
        {deal && (
          <>
            {' '}
            with <AccountLink id={deal.seller} /> for {count(deal.price)}
          </>
        )}
        .{' '}
        {typeof calls === 'number' ? (
          <>
            <b>
              It saved about {calls.toFixed(1)} model calls, {count(tokens)} tokens and {usd(cost)}
            </b>
            : what an average turn of this scope takes.
          </>
        ) : (
          'It saved nothing: it left the event to a turn.'
        )}
      </p>
    </Section>
  )
}

const RUNNING_MS = 2000

export default function TracePage() {
  const { params } = useRoute()
  const { query: asked } = useLocation()
  const id = params['id'] ?? ''
  const isRunning = useSignal(false)
  const path = `/v1/traces/${encodeURIComponent(id)}${query({ scope: asked['scope'] })}`
  const data = useGet<TraceReport>(path, isRunning.value ? { every_ms: RUNNING_MS } : {})
  const status = data.value?.status
  if (status !== undefined && isRunning.peek() !== (status === 'running')) isRunning.value = status === 'running'
  return (
    <Page title="Trace" path={<code>{visible(id)}</code>}>
      <Loaded data={data}>{(trace) => <Shown trace={trace} />}</Loaded>
    </Page>
  )
}

function Shown({ trace }: { trace: TraceReport }) {
  const { path, query: asked, route } = useLocation()
  const known = useSignal<{ of: string | null; report: ReplayReport } | null>(null)
  const asking = asked['ask'] === 'what-if'
  const way = pathTo(trace.root, asked['span'] ?? '')
  const span = way.at(-1) ?? firstOf(trace.root, 'event') ?? trace.root
  const event = way.findLast(({ kind }) => kind === 'event') ?? firstOf(trace.root, 'event')
  const show = (more: Record<string, string | null>, replaces = false) => route(path + query({ ...asked, ...more }), replaces)
  const select = (id: string) => show({ span: id }, true)
  const replay = useAction((body: Decided, left) =>
    post<ReplayReport>(`/v1/traces/${trace.trace_id}/replay${query({ scope: asked['scope'] })}`, body, left),
  )
  // The address has what is decided again, so that a link brings the report back.
  const wanted = decidedOf(asked)
  const report = known.value?.of === wanted ? known.value?.report : undefined
  useEffect(() => {
    if (wanted === null || report) return
    void replay.run(JSON.parse(wanted) as Decided).then((answer) => answer.ok && (known.value = { of: wanted, report: answer.value }))
  }, [wanted])
  const decided = (report: ReplayReport, changes: object) => {
    const text = JSON.stringify(changes)
    const body = text.length > MOST_IN_ADDRESS ? null : JSON.stringify({ mode: 'what_if', changes })
    known.value = { of: body, report }
    show({ ask: null, ...(body === null ? { replay: null, changes: null } : { replay: 'what_if', changes: text }) })
  }
  const download = useAction((what: File) => save(what, trace, asked['scope']))
  const problem = replay.problem ?? download.problem
  return (
    <>
      <div class="card">
        <Facts of={trace} columns={facts} />
        {trace.truncated && <p class="wait">The logs have more entries of this trace than are shown.</p>}
      </div>
      <div class="actions">
        <button type="button" disabled={replay.busy} onClick={() => show({ replay: 'pinned', changes: null })}>
          {replay.busy ? 'Replaying …' : 'Replay'}
        </button>
        <button type="button" onClick={() => show({ ask: 'what-if' })}>
          What if …
        </button>
        <button type="button" disabled={download.busy} onClick={() => void download.run('export')}>
          Export
        </button>
        <button type="button" disabled={download.busy} onClick={() => void download.run('receipt')}>
          Receipt
        </button>
        <button type="button" disabled={download.busy} onClick={() => void download.run('incident')}>
          Incident
        </button>
      </div>
      <ErrorBox problem={problem} />
      {report && <Report report={report} onSelect={select} />}
      {event && <Chain event={event} onSelect={select} />}
      {event &&
        below(event)
          .filter(isLicensed)
          .map((one) => <Licence key={one.span_id} span={one} />)}
      <Section title="Spans">
        <Waterfall trace={trace} selected={span.span_id} onSelect={select} />
      </Section>
      <Details key={span.span_id} span={span} event={event} trace_id={trace.trace_id} />
      {asking && <WhatIf trace={trace} onClose={() => show({ ask: null })} onReport={decided} />}
    </>
  )
}

/** Servers refuse longer addresses: code of a reflex may be longer. */
const MOST_IN_ADDRESS = 4000

type Decided = { mode: 'pinned' } | { mode: 'what_if'; changes: object }

/** The body of the replay that an address asks for, as JSON; null if it asks for none. */
function decidedOf({ replay, changes }: Record<string, string>): string | null {
  if (replay === 'pinned') return JSON.stringify({ mode: 'pinned' })
  if (replay !== 'what_if') return null
  const parsed = written(changes ?? '')
  return parsed.ok ? JSON.stringify({ mode: 'what_if', changes: parsed.value }) : null
}

const facts: TableColumn<TraceReport>[] = [
  { title: 'Status', of: ({ status }) => status, kind: 'status' },
  { title: 'Started', of: ({ started_at }) => started_at, kind: 'time' },
  { title: 'Took', of: ({ duration_ms }) => (duration_ms === null ? 'not ended' : duration(duration_ms)) },
  {
    title: 'Scopes',
    cell: ({ scopes }) =>
      scopes.map((scope) => (
        <span key={scope}>
          <ScopeLink scope={scope} />{' '}
        </span>
      )),
  },
  {
    title: 'Model calls',
    of: ({ usage: { model_calls, input_tokens, output_tokens, cost_usd } }) =>
      `${count(model_calls)} · ${count(input_tokens + output_tokens)} tokens · ${cost_usd === null ? 'price unknown' : usd(cost_usd)}`,
  },
]

type File = 'export' | 'receipt' | 'incident'

/** Saves a file about the trace under its name. `incident`: with the traces around it. */
async function save(what: File, trace: TraceReport, scope: string | undefined) {
  const { trace_id } = trace
  const answer =
    what === 'incident'
      ? await (await import('./incident.ts')).incidentOf(trace)
      : await requestText('GET', `/v1/traces/${trace_id}/${what}${query({ scope })}`)
  if (!answer.ok) return answer
  const address = URL.createObjectURL(new Blob([answer.value], { type: 'application/json' }))
  const link = document.createElement('a')
  link.href = address
  link.download = `${what === 'export' ? 'trace' : what}-${trace_id}.json`
  link.click()
  // The download has its own copy of the address by the next task.
  setTimeout(() => URL.revokeObjectURL(address))
  return answer
}
