import { useLocation } from 'preact-iso'
import { scopes } from '../../../../src/contract/lists/scopes.ts'
import type { ScopeSummary } from '../../../../src/contract/scope.ts'
import { query } from '../../api/index.ts'
import { Select } from '../../ui/form.tsx'
import { Rows, useList } from '../../ui/list.tsx'
import { count } from '../../ui/numbers.ts'
import { Page } from '../../ui/page.tsx'
import { SavedViews } from '../../ui/views.tsx'

const REFRESH_MS = 5000
const TYPED_MS = 250
const LIMIT = 1000

const states = {
  '': 'all scopes',
  open: 'with open events',
  turn: 'with a turn in flight',
  parked: 'with parked work',
  model: 'that wait for the model',
}

export default function ScopesPage() {
  const { path, query: asked, route } = useLocation()
  const { search = '', state = '' } = asked
  const pages = useList<ScopeSummary>(scopes, { limit: LIMIT, search, state }, REFRESH_MS)
  const { items, more, loading, reload } = pages
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
        <Select label="Show" value={state} options={states} onChange={(one) => set({ state: one })} />
        <span class="quiet" role="status">
          {items !== undefined && `${count(items.length)}${more ? ' and more' : ''} shown`}
        </span>
        <SavedViews />
      </search>
      {search === '' && state === '' ? (
        <Rows of={scopes} label="Scopes" pages={pages} empty="There are no scopes yet.">
          <p>Send an event to any name, such as chat/lobby:</p>
          <pre tabIndex={0} aria-label="A command">
            curl -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' "$URL/v1/events" -d '{'{'}"scope": "chat/lobby",
            "type": "ws.message", "connection_id": "me", "content": "Hello"{'}'}'
          </pre>
        </Rows>
      ) : (
        <Rows of={scopes} label="Scopes" pages={pages} empty="No scope matches.">
          <p>
            The search is in the names of scopes and agents. <a href="/scopes">Show all scopes</a>
          </p>
        </Rows>
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
