import { useLocation } from 'preact-iso'
import type { EventRecord } from '../../../../src/contract/event-record.ts'
import { part, query } from '../../api/index.ts'
import { usePages } from '../../api/use-pages.ts'
import { Empty, LoadedList } from '../../ui/feedback.tsx'
import { Select } from '../../ui/form.tsx'
import { Json } from '../../ui/json.tsx'
import { TraceLink } from '../../ui/links.tsx'
import { Status, statusText } from '../../ui/status.tsx'
import { Table, type TableColumn } from '../../ui/table.tsx'
import { Text } from '../../ui/text.tsx'
import { outcomeText } from '../../../../src/traces/entries/sentences.ts'
import { isUnmatched } from './words.ts'

const REFRESH_MS = 3000
const LIMIT = 100
/** `partial` is no status of its own: the event is completed. */
const statuses = Object.fromEntries(
  ['', 'partial', 'pending', 'processing', 'completed', 'ignored', 'dead_lettered', 'cancelled'].map((name) => [
    name,
    name === '' ? 'any' : statusText(name),
  ]),
)

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
  { title: 'Arrived', of: ({ accepted_at }) => accepted_at, kind: 'time', width: 6.5 },
  { title: 'Type', of: ({ event }) => event.type, width: 10 },
  {
    title: 'Status',
    cell: ({ status, outcome }) => <Status status={outcome && 'partial' in outcome ? 'partial' : status} />,
    width: 8,
  },
  { title: 'Outcome', cell: (record) => <Fate record={record} /> },
  { title: 'Trace', cell: ({ event }) => <TraceLink id={event.meta.trace_id} />, width: 4.5 },
]

type FiltersProps = { status: string; type: string; onSet: (changes: Record<string, string>) => void }

const Filters = ({ status, type, onSet: set }: FiltersProps) => (
  <search class="actions">
    <Select label="Status" value={status} options={statuses} onChange={(name) => set({ status: name })} />
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
  const pages = usePages<EventRecord>(
    `/v1/scopes/${part(scope)}/events${query({ limit: LIMIT, ...(status === 'partial' ? { partial: 'true' } : { status }), type })}`,
    { every_ms: REFRESH_MS },
  )
  const set = (changes: Record<string, string>) => route(`${path}${query({ ...asked, ...changes })}`, true)
  const one = pages.items?.find(({ event }) => event.id === picked)
  const empty = (
    <Empty title="No event is here yet.">
      <p>Send one with the button above.</p>
    </Empty>
  )
  return (
    <>
      <Filters status={status} type={type} onSet={set} />
      <LoadedList pages={pages} empty={empty}>
        {(items) => (
          <Table
            label="Events"
            rows={items}
            columns={columns}
            keyOf={({ event }) => event.id}
            current={picked}
            onSelect={({ event }) => set({ event: event.id })}
            onEnd={pages.loadMore}
          />
        )}
      </LoadedList>
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
