import { useLocation } from 'preact-iso'
import { useEffect } from 'preact/hooks'
import type { ScopeSummary } from '../../../../src/contract/scope.ts'
import { query } from '../../api/index.ts'
import { usePages } from '../../api/use-pages.ts'
import { Empty, ErrorBox, Loading } from '../../ui/feedback.tsx'
import { ScopeLink } from '../../ui/links.tsx'
import { compact, count, money, percent } from '../../ui/numbers.ts'
import { Page } from '../../ui/page.tsx'
import { Table, type TableColumn } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'

const REFRESH_MS = 5000
const TYPED_MS = 250
const LIMIT = 1000

const columns: TableColumn<ScopeSummary>[] = [
  { title: 'Scope', cell: ({ scope }) => <ScopeLink scope={scope} /> },
  { title: 'Agent', cell: ({ agent }) => <bdi>{agent}</bdi>, width: '9rem' },
  { title: 'Inbox', cell: ({ open }) => <span class={open > 0 ? 'wait' : 'quiet'}>{count(open)}</span>, width: '5.5rem', numeric: true },
  { title: 'Turn in flight', cell: ({ turn_since }) => <TurnSince since={turn_since} />, width: '8.5rem' },
  {
    title: 'Parked',
    cell: ({ parked }) => <span class={parked > 0 ? 'bad' : 'quiet'}>{count(parked)}</span>,
    width: '5rem',
    numeric: true,
  },
  {
    title: 'Model',
    cell: ({ asks_model_at: at }) =>
      at === null ? (
        <span class="quiet">–</span>
      ) : (
        <span class="wait">
          asked <Time at={at} />
        </span>
      ),
    width: '8rem',
  },
  { title: 'Events', cell: ({ accepted }) => compact(accepted), width: '5.5rem', numeric: true },
  { title: 'Fire rate', cell: ({ fire_share }) => percent(fire_share), width: '6rem', numeric: true },
  {
    title: 'Cost',
    cell: ({ cost_usd, unpriced_model_calls: unpriced }) => <span title={money(cost_usd, unpriced)}>{money(cost_usd, unpriced)}</span>,
    width: '9rem',
    numeric: true,
  },
  { title: 'Changed', cell: ({ updated_at }) => <Time at={updated_at} />, width: '7rem' },
]

const TurnSince = ({ since }: { since: string | null }) =>
  since === null ? (
    <span class="quiet">–</span>
  ) : (
    <span class="run">
      ▸ <Time at={since} />
    </span>
  )

export default function ScopesPage() {
  const { path, query: asked, route } = useLocation()
  const { search = '', state = '' } = asked
  const pages = usePages<ScopeSummary>(`/v1/scopes${query({ limit: LIMIT, search, state })}`)
  const { items, more, problem, loading, loadMore, reload } = pages
  const isShort = items !== undefined && items.length <= LIMIT
  // A list of several pages would shrink under the reader.
  useEffect(() => {
    const timer = setInterval(() => document.hidden || !isShort || reload(), REFRESH_MS)
    return () => clearInterval(timer)
  }, [isShort, search, state])
  const set = (changes: Record<string, string>) => route(`${path}${query({ search, state, ...changes })}`, true)
  return (
    <Page
      title="Scopes"
      actions={
        <button type="button" onClick={reload} disabled={loading}>
          Refresh
        </button>
      }
    >
      <search class="actions">
        <Search value={search} onSearch={(text) => set({ search: text })} />
        <label class="inline">
          Show
          <select value={state} onChange={({ currentTarget }) => set({ state: currentTarget.value })}>
            <option value="">all scopes</option>
            <option value="open">with open events</option>
            <option value="turn">with a turn in flight</option>
            <option value="parked">with parked work</option>
            <option value="model">that wait for the model</option>
          </select>
        </label>
        <span class="quiet" role="status">
          {items !== undefined && `${count(items.length)}${more ? ' and more' : ''} shown`}
        </span>
      </search>
      {problem && <ErrorBox problem={problem} onRetry={reload} />}
      {items === undefined && !problem && <Loading />}
      {items?.length === 0 && <NoScopes isSearched={search !== '' || state !== ''} />}
      {items !== undefined && items.length > 0 && (
        <Table label="Scopes" rows={items} columns={columns} keyOf={({ scope }) => scope} onEnd={() => more && !loading && loadMore()} />
      )}
    </Page>
  )
}

function Search({ value, onSearch }: { value: string; onSearch: (text: string) => void }) {
  let timer: ReturnType<typeof setTimeout> | undefined
  return (
    <label class="inline">
      Search
      <input
        type="search"
        defaultValue={value}
        maxLength={128}
        placeholder="Scope or agent"
        onInput={({ currentTarget }) => {
          clearTimeout(timer)
          timer = setTimeout(() => onSearch(currentTarget.value.trim()), TYPED_MS)
        }}
      />
    </label>
  )
}

const NoScopes = ({ isSearched }: { isSearched: boolean }) =>
  isSearched ? (
    <Empty title="No scope matches.">
      <p>
        The search is in the names of scopes and agents. <a href="/scopes">Show all scopes</a>
      </p>
    </Empty>
  ) : (
    <Empty title="There are no scopes yet.">
      <p>A scope appears a second after its first event. Send one to any name, such as chat/lobby:</p>
      <pre tabIndex={0} aria-label="A command">
        curl -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' "$URL/v1/events" -d '{'{'}"scope": "chat/lobby", "type":
        "ws.message", "connection_id": "me", "content": "Hello"{'}'}'
      </pre>
    </Empty>
  )
