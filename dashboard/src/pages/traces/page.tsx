import { useSignal } from '@preact/signals'
import { useLocation } from 'preact-iso'
import type { TraceSummary } from '../../../../src/contract/reports/trace.ts'
import { query } from '../../api/index.ts'
import { usePages } from '../../api/use-pages.ts'
import { Empty, LoadedList } from '../../ui/feedback.tsx'
import { Field, Select } from '../../ui/form.tsx'
import { ScopeLink, TraceLink } from '../../ui/links.tsx'
import { Page } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { visible } from '../../ui/text.tsx'
import { duration } from '../../ui/time.tsx'

/** Kinds of spans that people search for. */
const kinds = {
  '': 'anything',
  effect: 'a tool was called',
  reflex: 'a reflex ran',
  turn: 'a turn thought',
  gate: 'a gate decided',
  approval: 'a person was asked',
  reply: 'it replied',
}
const statuses = { '': 'any', running: 'running', ok: 'ok', partial: 'a tool failed', error: 'error' }

/** The filters are in the address, so that a search can be shared. */
export default function TracesPage() {
  const { path, query: asked, route } = useLocation()
  const { scope = '', kind = '', status = '', skill = '' } = asked
  const list = usePages<TraceSummary>(`/v1/traces${query({ scope, kind, status, skill, limit: 100 })}`, { every_ms: 2000 })
  const set = (name: string, value: string) => route(path + query({ ...asked, [name]: value }), true)
  const written = useSignal(scope)
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    set('scope', written.value.trim())
  }
  return (
    <Page title="Activity">
      <form class="actions" onSubmit={submit}>
        <Field label="Scope" stacked={false} value={written.value} placeholder="all" onInput={(text) => (written.value = text)} />
        <Select label="In which" value={kind} options={kinds} onChange={(value) => set('kind', value)} />
        <Select label="Status" value={status} options={statuses} onChange={(value) => set('status', value)} />
        <button type="submit">Search</button>
      </form>
      <LoadedList
        pages={list}
        empty={
          <Empty title="No trace matches.">
            <p>Each event and each call has a trace, about a second after it was accepted.</p>
          </Empty>
        }
      >
        {(rows) => <Traces rows={rows} onEnd={list.loadMore} />}
      </LoadedList>
    </Page>
  )
}

const Traces = ({ rows, onEnd }: { rows: TraceSummary[]; onEnd: () => void }) => (
  <Table
    label="All traces"
    rows={rows}
    keyOf={({ trace_id }) => trace_id}
    onEnd={onEnd}
    columns={[
      { title: 'Started', of: ({ started_at }) => started_at, kind: 'time' },
      {
        title: 'Began with',
        cell: ({ trace_id, first_event }) => (
          <TraceLink id={trace_id} text={first_event ? visible(`${first_event.type} ${first_event.id}`) : 'a call'} />
        ),
      },
      {
        title: 'Scope',
        cell: ({ scopes: [first = '', ...others] }) => (
          <>
            <ScopeLink scope={first} /> {others.length > 0 && `and ${others.length} more`}
          </>
        ),
        width: 14,
      },
      { title: 'Status', of: ({ status }) => status, kind: 'status' },
      { title: 'Took', cell: ({ duration_ms }) => (duration_ms === null ? '' : duration(duration_ms)), width: 6, numeric: true },
      { title: 'What happened', cell: ({ kinds: all }) => all.filter((kind) => kind in kinds).join(', ') },
    ]}
  />
)
