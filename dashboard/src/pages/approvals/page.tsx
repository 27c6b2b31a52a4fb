import { useSignal } from '@preact/signals'
import { approvals } from '../../../../src/features/approvals/contract/lists.ts'
import type { Pages } from '../../api/use-pages.ts'
import { Empty, Loaded, ErrorBox } from '../../ui/feedback.tsx'
import { columnsOf } from '../../ui/column.tsx'
import { useList } from '../../ui/list.tsx'
import { Page } from '../../ui/page.tsx'
import { Table, type TableColumn } from '../../ui/table.tsx'
import { Tabs, useTab } from '../../ui/tabs.tsx'
import { useKeys, useSelection } from '../../ui/use-keys.ts'
import { Decide, type DecideVerb } from './decide.tsx'
import { Rules } from './rules.tsx'
import { callsOf, type ShownApproval, WillHappen } from './will-happen.tsx'
import { part, useGet } from '../../api/index.ts'
import { Json } from '../../ui/json.tsx'
import { usd } from '../../ui/numbers.ts'
import { ListedOrigins, Origins } from '../../ui/origins.tsx'
import { Status } from '../../ui/status.tsx'
import { Facts } from '../../ui/facts.tsx'
import { Text } from '../../ui/text.tsx'

type DetailProps = { id: string; listed: ShownApproval | undefined; onDecide: (verdict: DecideVerb) => void }
const SHOWN_EVERY_MS = 2000

const facts: TableColumn<ShownApproval>[] = [
  { title: 'Status', of: (approval) => approval.status, kind: 'status' },
  { title: 'Scope', of: ({ scope }) => scope, kind: 'scope' },
  { title: 'Requested by', of: ({ requested_by }) => requested_by },
  { title: 'Requested', of: ({ created_at }) => created_at, kind: 'time' },
  { title: 'Expires', of: ({ status, expires_at }) => (status === 'pending' ? expires_at : null), kind: 'time' },
  { title: 'Decided', of: ({ status, decided_at }) => (status === 'pending' ? null : decided_at), kind: 'time' },
  { title: 'Decided by', of: ({ decided_by }) => decided_by },
  { title: 'Changed inputs', of: ({ edits }) => edits },
]

/** An approval, and the run that followed. A link may name one that is not in the list. */
function Detail({ id, listed, onDecide }: DetailProps) {
  const { value, problem, reload } = useGet<ShownApproval>(`/v1/approvals/${part(id)}`, { every_ms: SHOWN_EVERY_MS })
  const approval = value ?? listed
  if (!approval) return problem && <ErrorBox problem={problem} onRetry={reload} />
  const { scope, inputs, why, status, reason } = approval
  const calls = callsOf(approval)
  return (
    <section class="card detail" aria-label="Approval">
      <div class="heading">
        <h2>
          {approval.skill_id} <span class="quiet">{approval.version}</span>
        </h2>
        {status === 'pending' && (
          <div class="actions">
            <button type="button" class="primary" onClick={() => onDecide('approve')}>
              Approve <kbd>a</kbd>
            </button>
            <button type="button" class="danger" onClick={() => onDecide('reject')}>
              Reject <kbd>r</kbd>
            </button>
          </div>
        )}
      </div>
      <Facts of={approval} columns={facts} />
      <h3>Why</h3>
      <p>
        <Text text={why} most={4000} />
      </p>
      {reason !== null && (
        <p>
          Reason of the decision: <Text text={reason} most={1000} />
        </p>
      )}
      <h3>Inputs</h3>
      <Json value={inputs} label="Inputs" />
      {calls.map((call, index) => (
        <Origins key={index} call={call} of={calls.length > 1 ? `${index + 1}, ${call.tool}` : undefined} />
      ))}
      <ListedOrigins at={`/v1/approvals/${part(id)}/steps`} />
      {calls.length > 0 && <Rules key={scope} scope={scope} />}
      <h3>{status === 'pending' ? 'What will happen' : 'Plan'}</h3>
      <WillHappen approval={approval} />
      <Run approval={approval} />
    </section>
  )
}

function Run({ approval: { status, run } }: { approval: ShownApproval }) {
  if (status !== 'approved') return null
  return (
    <>
      <h3>The run</h3>
      {run === null ? (
        <p role="status">It has not started yet.</p>
      ) : (
        <>
          <p role="status">
            <Status status={run.status} /> {run.reason !== null && <Text text={run.reason} most={1000} />}{' '}
            <span class="quiet">{usd(run.cost_usd)}</span>
          </p>
          <ol class="steps">
            {[...run.steps, ...run.compensation].map(({ tool, status: end }, index) => (
              <li key={index}>
                <code>{tool}</code> <Status status={end} />
              </li>
            ))}
          </ol>
          <Json value={run.outputs} label="Outputs" />
        </>
      )}
    </>
  )
}

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
