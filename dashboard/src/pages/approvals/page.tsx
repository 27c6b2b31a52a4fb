import { useSignal } from '@preact/signals'
import { approvals } from '../../../../src/features/approvals/contract/lists.ts'
import type { Pages } from '../../api/use-pages.ts'
import { Empty, Loaded } from '../../ui/feedback.tsx'
import { columnsOf } from '../../ui/column.tsx'
import { useList } from '../../ui/list.tsx'
import { Page } from '../../ui/page.tsx'
import { Table, type TableColumn } from '../../ui/table.tsx'
import { Tabs, useTab } from '../../ui/tabs.tsx'
import { useKeys, useSelection } from '../../ui/use-keys.ts'
import { Decide, type DecideVerb } from './decide.tsx'
import { Detail } from './detail.tsx'
import type { ShownApproval } from './will-happen.tsx'

const tabs = [
  { id: 'pending', text: 'Waiting' },
  { id: 'approved', text: 'Approved' },
  { id: 'rejected', text: 'Rejected' },
  { id: 'expired', text: 'Expired' },
] as const

const columns = (isPending: boolean): TableColumn<ShownApproval>[] =>
  columnsOf<ShownApproval>(approvals, [
    {
      title: 'What',
      cell: ({ kind, skill_id, version }) => (
        <>
          {kind !== 'run' && `${kind} of `}
          <b>{skill_id}</b> <span class="quiet">{version}</span>
        </>
      ),
    },
    { title: 'Status', of: ({ status, run }) => run?.status ?? status, kind: 'status', width: 9 },
    ...(isPending ? [] : [{ title: 'Decided', of: ({ decided_at }: ShownApproval) => decided_at, kind: 'time' as const }]),
  ])

export default function ApprovalsPage() {
  return (
    <Page title="Approvals" needs="operator" actions={<Tabs label="Status" tabs={tabs} parameter="status" />}>
      <Inbox />
    </Page>
  )
}

const EVERY_MS = 5000

function Inbox() {
  const status = useTab(
    tabs.map(({ id }) => id),
    'status',
  )
  const pages = useList<ShownApproval>(approvals, { status, limit: 200 }, EVERY_MS)
  return <Loaded data={{ ...pages, value: pages.items }}>{(items) => <List items={items} status={status} pages={pages} />}</Loaded>
}

type ListProps = { items: ShownApproval[]; status: string; pages: Pages<ShownApproval> }

function List({ items, status, pages }: ListProps) {
  const { id, select } = useSelection(items.map((item) => item.id))
  const deciding = useSignal<DecideVerb | null>(null)
  const listed = items.find((item) => item.id === id)
  const begin = (verdict: DecideVerb) => {
    if (listed?.status === 'pending') deciding.value = verdict
  }
  useKeys({ a: () => begin('approve'), r: () => begin('reject') })
  const decided = (approval: ShownApproval) => {
    const next = items[items.findIndex((item) => item.id === approval.id) + 1] ?? items.find((item) => item.id !== approval.id)
    select(next?.id ?? approval.id)
    pages.reload()
  }
  if (items.length === 0 && id === null)
    return (
      <Empty title={status === 'pending' ? 'Nothing waits for a decision.' : `No approval is ${status}.`}>
        <p class="quiet">A skill whose policy needs approval, or a reflex that is proven, appears here with what will happen.</p>
      </Empty>
    )
  return (
    <>
      <p class="quiet keys">
        <kbd>j</kbd> <kbd>k</kbd> next and previous, <kbd>a</kbd> approve, <kbd>r</kbd> reject
      </p>
      <div class="list-and-detail">
        <Table
          label="Approvals"
          rows={items}
          columns={columns(status === 'pending')}
          keyOf={(item) => item.id}
          current={id}
          onSelect={(item) => select(item.id)}
          onEnd={pages.more ? pages.loadMore : undefined}
        />
        {id !== null && <Detail id={id} listed={listed} onDecide={begin} />}
      </div>
      {deciding.value && listed && (
        <Decide approval={listed} verdict={deciding.value} onClose={() => (deciding.value = null)} onDecided={decided} />
      )}
    </>
  )
}
