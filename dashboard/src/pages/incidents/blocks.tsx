import { useSignal } from '@preact/signals'
import { hasRole, part, query, request, useGet } from '../../api/index.ts'
import { useAction } from '../../api/use-action.ts'
import { usePages } from '../../api/use-pages.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { Empty, ErrorBox, Loading } from '../../ui/feedback.tsx'
import { ScopeLink, TraceLink } from '../../ui/links.tsx'
import { notify } from '../../ui/notices.tsx'
import { NeedsRole } from '../../ui/page.tsx'
import { Table, type Column } from '../../ui/table.tsx'
import { Text } from '../../ui/text.tsx'
import { Time, withTimes } from '../../ui/time.tsx'

/** As `GET /v1/blocks` of the SSH guard lists it. */
type Block = { id: string; scope: string; address: string; reason: string; blocked_at: string }

export function Blocks() {
  const search = useSignal('')
  const opened = useSignal<Block | null>(null)
  const { items, more, problem, loadMore, reload } = usePages<Block>(`/v1/blocks${query({ limit: 500 })}`, { every_ms: 10_000 })
  const found = items?.filter(({ address, scope, reason }) =>
    [address, scope, withTimes(reason)].some((text) => text.includes(search.value)),
  )
  return (
    <>
      {problem && <ErrorBox problem={problem} onRetry={reload} />}
      {found === undefined && !problem && <Loading />}
      {items?.length === 0 && (
        <Empty title="No address is blocked.">
          <p class="quiet">The SSH guard blocks addresses that guess passwords. Send it the lines of an auth log, or run npm run demo.</p>
        </Empty>
      )}
      {found && items && items.length > 0 && (
        <>
          <label class="inline">
            Search <input type="search" value={search} onInput={({ currentTarget }) => (search.value = currentTarget.value)} />
          </label>
          <Table
            label="Blocks"
            rows={found}
            columns={columns((block) => (opened.value = block))}
            keyOf={({ id }) => id}
            onEnd={more ? loadMore : undefined}
          />
        </>
      )}
      {opened.value && (
        <Details
          block={opened.value}
          onClose={() => {
            opened.value = null
            reload()
          }}
        />
      )}
    </>
  )
}

const columns = (open: (block: Block) => void): Column<Block>[] => [
  { title: 'Address', width: '11rem', cell: ({ address }) => <code>{address}</code> },
  { title: 'Scope', width: '9rem', cell: ({ scope }) => <ScopeLink scope={scope} /> },
  { title: 'Why', cell: ({ reason }) => <Text text={withTimes(reason)} /> },
  { title: 'Blocked', width: '7rem', cell: ({ blocked_at }) => <Time at={blocked_at} /> },
  {
    title: 'Details',
    width: '8rem',
    cell: (block) => (
      <button type="button" class="plain" aria-label={`Details of the block of ${block.address}`} onClick={() => open(block)}>
        Details …
      </button>
    ),
  },
]

function Details({ block, onClose }: { block: Block; onClose: () => void }) {
  const { run, busy, problem } = useAction(() => request<undefined>('DELETE', `/v1/blocks/${part(block.id)}`))
  const lift = async () => {
    if (!(await run(undefined)).ok) return
    notify(`${block.address} is not blocked any more`)
    onClose()
  }
  return (
    <Dialog title={`The block of ${block.address}`} onClose={onClose}>
      <p>
        Why: <Text text={withTimes(block.reason)} most={1000} />
      </p>
      <DecidedBy block={block} />
      {hasRole('operator') ? (
        <>
          <p class="quiet">Lifting notifies the firewall, and overrules a reflex that blocked it. A new attack can be blocked again.</p>
          {problem && <ErrorBox problem={problem} />}
          <button type="button" class="danger" disabled={busy} onClick={() => void lift()}>
            Lift the block
          </button>
        </>
      ) : (
        <NeedsRole role="operator" what="Lifting it" />
      )}
    </Dialog>
  )
}

type Effect = { seq: number; trace_id: string; span_id: string; tool: string; input: unknown; cause: { by: string } | { turn_id: string } }
const NEWEST = Number.MAX_SAFE_INTEGER

/** The effect that blocked it, in the log of its scope: who caused it, and the trace. */
function DecidedBy({ block: { scope, address } }: { block: Block }) {
  const path = `/v1/scopes/${part(scope)}/log${query({ kind: 'effect-started', before: NEWEST, limit: 1000 })}`
  const { value, problem } = useGet<{ items: Effect[] }>(path)
  if (problem) return <ErrorBox problem={problem} />
  if (!value) return <Loading />
  const effect = value.items.findLast(({ tool, input }) => tool.startsWith('block') && Object.values(input ?? {}).includes(address))
  if (!effect) return <p class="quiet">The log of the scope does not show it any more.</p>
  const { cause, trace_id, span_id } = effect
  return (
    <p>
      Decided by {'by' in cause ? cause.by.replace(':', ' ') : 'a turn'}:{' '}
      <TraceLink id={trace_id} span={span_id} text="what it saw, and why it acted" />
    </p>
  )
}
