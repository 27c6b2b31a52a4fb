import { useSignal } from '@preact/signals'
import { dead_letters } from '../../../../src/contract/lists/deployment.ts'
import type { Pages } from '../../api/use-pages.ts'
import { Empty, Loaded } from '../../ui/feedback.tsx'
import { columnsOf } from '../../ui/column.tsx'
import { useFilters } from '../../ui/filters.tsx'
import { useList } from '../../ui/list.tsx'
import { Page } from '../../ui/page.tsx'
import { Table, type TableColumn } from '../../ui/table.tsx'
import { useSelection } from '../../ui/use-keys.ts'
import { Bulk, type DeadLetterFilter } from './bulk.tsx'
import type { ListedDeadLetter } from './calls.ts'
import { Letter } from './letter.tsx'

export default function DeadLettersPage() {
  return (
    <Page title="Dead letters" needs="operator">
      <Letters />
    </Page>
  )
}

function Letters() {
  const { given: filter, form } = useFilters(dead_letters.flags)
  const pages = useList<ListedDeadLetter>(dead_letters, { ...filter, limit: 200 }, 10_000)
  return (
    <>
      {form}
      <Loaded data={{ ...pages, value: pages.items }}>{(items) => <List items={items} pages={pages} filter={filter} />}</Loaded>
    </>
  )
}

type ListProps = { items: ListedDeadLetter[]; pages: Pages<ListedDeadLetter>; filter: DeadLetterFilter }

function List({ items, pages, filter }: ListProps) {
  const chosen = useSignal<ReadonlySet<string>>(new Set())
  const { id, select } = useSelection(items.map((item) => item.id))
  const letter = items.find((item) => item.id === id)
  const toggle = (which: string) => {
    const next = new Set(chosen.value)
    if (!next.delete(which)) next.add(which)
    chosen.value = next
  }
  const done = () => {
    chosen.value = new Set()
    select(null)
    pages.reload()
  }
  if (items.length === 0)
    return (
      <Empty title={filter['scope'] || filter['type'] ? 'No dead letter matches the filter.' : 'There is no dead letter.'}>
        <p class="quiet">An event becomes one when all its attempts failed. Nothing is lost: it can be inspected and retried here.</p>
      </Empty>
    )
  const kept = items.filter((item) => chosen.value.has(item.id))
  return (
    <>
      <Bulk letters={kept} all={items} more={pages.more} filter={filter} onChoose={(ids) => (chosen.value = new Set(ids))} onDone={done} />
      <div class="list-and-detail">
        <Table
          label="Dead letters"
          rows={items}
          columns={columnsOf<ListedDeadLetter>(dead_letters, columns(chosen.value, toggle))}
          keyOf={(item) => item.id}
          current={id}
          onSelect={(item) => select(item.id)}
          onEnd={pages.more ? pages.loadMore : undefined}
        />
        {letter ? (
          <Letter key={letter.id} letter={letter} onDone={done} />
        ) : (
          <Empty title="This letter is not in the list: it was retried or discarded." />
        )}
      </div>
    </>
  )
}

const columns = (chosen: ReadonlySet<string>, toggle: (id: string) => void): TableColumn<ListedDeadLetter>[] => [
  {
    title: 'Chosen',
    width: 6,
    cell: ({ id, type }) => (
      <input
        type="checkbox"
        aria-label={`Choose ${type ?? 'the message'} ${id}`}
        checked={chosen.has(id)}
        onClick={(event) => event.stopPropagation()}
        onChange={() => toggle(id)}
      />
    ),
  },
]
