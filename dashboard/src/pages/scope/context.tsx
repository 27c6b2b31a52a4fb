import { useSignal } from '@preact/signals'
import { useLocation } from 'preact-iso'
import type { EventRecord } from '../../../../src/contract/event-record.ts'
import type { ContextView } from '../../../../src/contract/scope.ts'
import { part, query, useGet } from '../../api/index.ts'
import { Empty, Loaded } from '../../ui/feedback.tsx'
import { Json } from '../../ui/json.tsx'
import { TraceLink } from '../../ui/links.tsx'
import { count } from '../../ui/numbers.ts'
import { Section } from '../../ui/page.tsx'
import { Table, type TableColumn } from '../../ui/table.tsx'
import { Fact, Facts } from '../../ui/facts.tsx'
import { Clock, Time } from '../../ui/time.tsx'
import { brief } from '../../../../src/traces/entries/sentences.ts'
import { ownFields } from './words.ts'

type Seen = EventRecord['event']
const REFRESH_MS = 2000
const LIMIT = 1000

const columns: TableColumn<Seen>[] = [
  { title: 'Time', cell: ({ timestamp }) => <Clock at={timestamp} />, width: 8 },
  { title: 'Type', of: ({ type }) => type, width: 10 },
  { title: 'Source', of: ({ source }) => source, width: 9 },
  { title: 'Content', of: (event) => brief(ownFields(event)) },
  { title: 'Trace', cell: ({ meta }) => <TraceLink id={meta.trace_id} />, width: 4.5 },
]

/** The working memory, now or as it was after an entry of the log, which the address names. */
export function Context({ scope, newest }: { scope: string; newest: number }) {
  const { path, query: asked, route } = useLocation()
  const { at } = asked
  const moved = useSignal<number | null>(null)
  // The field is drawn again with each new entry, which must not take away what somebody types.
  const typed = useSignal<string | null>(null)
  const data = useGet<ContextView>(
    `/v1/scopes/${part(scope)}/context${query({ limit: LIMIT, at })}`,
    at === undefined ? { every_ms: REFRESH_MS } : {},
  )
  const go = (seq: number | null) => {
    moved.value = null
    typed.value = null
    const { at: _before, ...rest } = asked
    route(`${path}${query({ ...rest, at: seq })}`, true)
  }
  const shown = moved.value ?? (at === undefined ? newest : Number(at))
  return (
    <>
      <div class="actions">
        <label class="inline">
          After entry
          <input
            type="number"
            min={0}
            max={newest}
            value={typed.value ?? shown}
            onInput={({ currentTarget }) => (typed.value = currentTarget.value)}
            onChange={({ currentTarget }) => go(Math.max(0, Math.floor(Number(currentTarget.value) || 0)))}
          />
        </label>
        <input
          type="range"
          class="past"
          aria-label="Entry of the log"
          min={0}
          max={Math.max(newest, shown)}
          value={shown}
          onInput={({ currentTarget }) => (moved.value = Number(currentTarget.value))}
          onChange={({ currentTarget }) => go(Number(currentTarget.value))}
        />
        <span class="quiet">of {count(newest)}</span>
        {at === undefined ? (
          <span>As it is now</span>
        ) : (
          <button type="button" onClick={() => go(null)}>
            Back to now
          </button>
        )}
      </div>
      <Loaded data={data}>{(context) => <Memory key={at} context={context} />}</Loaded>
    </>
  )
}

function Memory({ context: { events, count: all, scratch, created_at, last_action_at } }: { context: ContextView }) {
  return (
    <>
      <div class="card">
        <Facts>
          <Fact name="Events">{count(all)}</Fact>
          <Fact name="Created">
            <Time at={created_at} />
          </Fact>
          <Fact name="Last action">
            <Time at={last_action_at} />
          </Fact>
        </Facts>
      </div>
      <Section title="Events since the last action">
        {events.length < all && <p class="quiet">The newest {count(events.length)} are shown.</p>}
        {events.length === 0 ? (
          <Empty title="The context holds no events." />
        ) : (
          <Table label="Events of the context" rows={events} columns={columns} keyOf={({ id }) => id} />
        )}
      </Section>
      <Section title="Scratch">
        {Object.keys(scratch).length === 0 ? <p class="quiet">Nothing is noted.</p> : <Json value={scratch} open={2} label="Scratch" />}
      </Section>
    </>
  )
}
