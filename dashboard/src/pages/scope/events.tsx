import { useLocation } from 'preact-iso'
import { useEffect } from 'preact/hooks'
import type { EventRecord } from '../../../../src/contract/event-record.ts'
import { part, query } from '../../api/index.ts'
import { usePages } from '../../api/use-pages.ts'
import { Empty, ErrorBox, Loading } from '../../ui/feedback.tsx'
import { Json } from '../../ui/json.tsx'
import { TraceLink } from '../../ui/links.tsx'
import { Status, statusText } from '../../ui/status.tsx'
import { Table, type TableColumn } from '../../ui/table.tsx'
import { Text } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import { outcomeText } from '../../../../src/traces/entries/sentences.ts'
import { isUnmatched } from './words.ts'

const REFRESH_MS = 3000
const LIMIT = 100
/** `partial` is no status of its own: the event is completed. */
const statuses = ['partial', 'pending', 'processing', 'completed', 'ignored', 'dead_lettered', 'cancelled']

/** The fate of an event as one sentence. */
export function Fate({ record: { outcome, waiting, error } }: { record: EventRecord }) {
  if (outcome) {
    return (
      <span class={isUnmatched(outcome) ? 'wait' : ''}>
        <Text text={outcomeText(outcome)} />
      </span>
    )
  }
  return (
    <>
      Waits: <Text text={waiting?.detail ?? error ?? ''} />
    </>
  )
}

const columns: TableColumn<EventRecord>[] = [
  { title: 'Arrived', cell: ({ accepted_at }) => <Time at={accepted_at} />, width: '6.5rem' },
  { title: 'Type', cell: ({ event }) => <Text text={event.type} />, width: '10rem' },
  {
    title: 'Status',
    cell: ({ status, outcome }) => <Status status={outcome && 'partial' in outcome ? 'partial' : status} />,
    width: '8rem',
  },
  { title: 'Outcome', cell: (record) => <Fate record={record} /> },
  { title: 'Trace', cell: ({ event }) => <TraceLink id={event.meta.trace_id} />, width: '4.5rem' },
]

type FiltersProps = { status: string; type: string; onSet: (changes: Record<string, string>) => void }

const Filters = ({ status, type, onSet: set }: FiltersProps) => (
  <search class="actions">
    <label class="inline">
      Status
      <select value={status} onChange={({ currentTarget }) => set({ status: currentTarget.value })}>
        <option value="">any</option>
        {statuses.map((name) => (
          <option key={name} value={name}>
            {statusText(name)}
          </option>
        ))}
      </select>
    </label>
    <label class="inline">
      Type
      <input value={type} maxLength={128} onChange={({ currentTarget }) => set({ type: currentTarget.value.trim() })} />
    </label>
  </search>
)

/** The events of a scope with what became of each; those that nothing matched say so. */
export function Events({ scope }: { scope: string }) {
  const { path, query: asked, route } = useLocation()
  const { status = '', type = '', event: picked = null } = asked
  const { items, more, problem, loading, loadMore, reload } = usePages<EventRecord>(
    `/v1/scopes/${part(scope)}/events${query({ limit: LIMIT, ...(status === 'partial' ? { partial: 'true' } : { status }), type })}`,
  )
  const isShort = (items?.length ?? 0) <= LIMIT
  useEffect(() => {
    const timer = setInterval(() => document.hidden || !isShort || reload(), REFRESH_MS)
    return () => clearInterval(timer)
  }, [isShort, status, type])
  const set = (changes: Record<string, string>) => route(`${path}${query({ ...asked, ...changes })}`, true)
  const one = items?.find(({ event }) => event.id === picked)
  return (
    <>
      <Filters status={status} type={type} onSet={set} />
      {problem && <ErrorBox problem={problem} onRetry={reload} />}
      {items === undefined && !problem && <Loading />}
      {items?.length === 0 && (
        <Empty title="No event is here yet.">
          <p>Send one with the button above.</p>
        </Empty>
      )}
      {items !== undefined && items.length > 0 && (
        <Table
          label="Events"
          rows={items}
          columns={columns}
          keyOf={({ event }) => event.id}
          current={picked}
          onSelect={({ event }) => set({ event: event.id })}
          onEnd={() => more && !loading && loadMore()}
        />
      )}
      {one && (
        <section class="card" aria-label="The chosen event">
          <p>
            <Status status={one.status} /> <Fate record={one} />
          </p>
          <Json key={one.event.id} value={one} open={2} label="The event and its outcome" />
        </section>
      )}
    </>
  )
}
