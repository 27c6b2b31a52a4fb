import { useGet, hasRole, part, query, request, post } from '../../api/index.ts'
import type { ServerHealth } from '../../api/health.ts'
import { Empty, Loaded, LoadedList, ErrorBox } from '../../ui/feedback.tsx'
import { Page, NeedsRole } from '../../ui/page.tsx'
import { Tabs, useTab } from '../../ui/tabs.tsx'
import { useSignal } from '@preact/signals'
import { useAction } from '../../api/use-action.ts'
import { usePages } from '../../api/use-pages.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { ScopeLink, TraceLink } from '../../ui/links.tsx'
import { notify } from '../../ui/notices.tsx'
import { counted } from '../../ui/numbers.ts'
import { Table, type TableColumn } from '../../ui/table.tsx'
import { Text, visible } from '../../ui/text.tsx'
import { Time, withTimes } from '../../ui/time.tsx'
import { Status } from '../../ui/status.tsx'

/** As `GET /v1/incidents` of the SSH guard lists it. */
type Incident = {
  id: string
  scope: string
  state: 'open' | 'closed'
  title: string
  details: string
  evidence: string[]
  opened_at: string
  closed_at: string | null
}

function Incidents({ state }: { state: string }) {
  const pages = usePages<Incident>(`/v1/incidents${query({ state, limit: 100 })}`)
  return (
    <LoadedList pages={pages} empty={<Empty title={`There is no ${state} incident.`} />}>
      {(items) => (
        <>
          {items.map((incident) => (
            <Card key={incident.id} incident={incident} onClosed={pages.reload} />
          ))}
          {pages.more && (
            <button type="button" onClick={pages.loadMore}>
              More
            </button>
          )}
        </>
      )}
    </LoadedList>
  )
}

function Card({ incident, onClosed }: { incident: Incident; onClosed: () => void }) {
  const { scope, state, title, details, evidence, opened_at, closed_at } = incident
  return (
    <article class="card detail">
      <div class="heading">
        <h2>
          <Text text={title} />
        </h2>
        <Status status={state} />
      </div>
      <p class="quiet">
        <ScopeLink scope={scope} />, opened <Time at={opened_at} />
        {closed_at !== null && [', closed ', <Time key={0} at={closed_at} />]}
      </p>
      <p>
        <Text text={details} most={4000} />
      </p>
      {evidence.length > 0 && (
        <details>
          <summary>{counted(evidence.length, 'log line')}</summary>
          <pre class="wrap">{visible(evidence.join('\n'))}</pre>
          <a href={`/traces${query({ scope, until: opened_at })}`}>Their traces</a>
        </details>
      )}
      {state === 'open' && hasRole('operator') && <Close incident={incident} onClosed={onClosed} />}
    </article>
  )
}

function Close({ incident: { id, title }, onClosed }: { incident: Incident; onClosed: () => void }) {
  const reason = useSignal('')
  const { run, busy, problem } = useAction((text: string) => post<Incident>(`/v1/incidents/${part(id)}/close`, { reason: text }))
  const close = async (event: SubmitEvent) => {
    event.preventDefault()
    if (!(await run(reason.value.trim())).ok) return
    notify(`${title}: closed`)
    onClosed()
  }
  return (
    <form class="actions" onSubmit={(event) => void close(event)}>
      <label class="inline">
        Reason
        <input required maxLength={500} value={reason} onInput={({ currentTarget }) => (reason.value = currentTarget.value)} />
      </label>
      <button type="submit" disabled={busy}>
        Close the incident
      </button>
      <ErrorBox problem={problem} />
    </form>
  )
}

/** As `GET /v1/blocks` of the SSH guard lists it. */
type Block = { id: string; scope: string; address: string; reason: string; blocked_at: string }

function Blocks() {
  const search = useSignal('')
  const opened = useSignal<Block | null>(null)
  const pages = usePages<Block>(`/v1/blocks${query({ limit: 500 })}`, { every_ms: 10_000 })
  const isFound = ({ address, scope, reason }: Block) => [address, scope, withTimes(reason)].some((text) => text.includes(search.value))
  return (
    <>
      <LoadedList
        pages={pages}
        empty={
          <Empty title="No address is blocked.">
            <p class="quiet">The SSH guard blocks addresses that guess passwords. Send it the lines of an auth log, or run npm run demo.</p>
          </Empty>
        }
      >
        {(items) => (
          <>
            <label class="inline">
              Search <input type="search" value={search} onInput={({ currentTarget }) => (search.value = currentTarget.value)} />
            </label>
            <Table
              label="Blocks"
              rows={items.filter(isFound)}
              columns={columns((block) => (opened.value = block))}
              keyOf={({ id }) => id}
              onEnd={pages.more ? pages.loadMore : undefined}
            />
          </>
        )}
      </LoadedList>
      {opened.value && (
        <Details
          block={opened.value}
          onClose={() => {
            opened.value = null
            pages.reload()
          }}
        />
      )}
    </>
  )
}

const columns = (open: (block: Block) => void): TableColumn<Block>[] => [
  { title: 'Address', width: 11, cell: ({ address }) => <code>{address}</code> },
  { title: 'Scope', of: ({ scope }) => scope, kind: 'scope', width: 9 },
  { title: 'Why', of: ({ reason }) => withTimes(reason) },
  { title: 'Blocked', of: ({ blocked_at }) => blocked_at, kind: 'time' },
  {
    title: 'Details',
    width: 8,
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
          <ErrorBox problem={problem} />
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
  return <Loaded data={useGet<{ items: Effect[] }>(path)}>{({ items }) => <Decider effects={items} address={address} />}</Loaded>
}

function Decider({ effects, address }: { effects: Effect[]; address: string }) {
  const effect = effects.findLast(({ tool, input }) => tool.startsWith('block') && Object.values(input ?? {}).includes(address))
  if (!effect) return <p class="quiet">The log of the scope does not show it any more.</p>
  const { cause, trace_id, span_id } = effect
  return (
    <p>
      Decided by {'by' in cause ? cause.by.replace(':', ' ') : 'a turn'}:{' '}
      <TraceLink id={trace_id} span={span_id} text="what it saw, and why it acted" />
    </p>
  )
}

const tabs = [
  { id: 'blocks', text: 'Blocks' },
  { id: 'open', text: 'Open incidents' },
  { id: 'closed', text: 'Closed incidents' },
] as const

/** The pages of the SSH guard, which has routes of its own. */
const AGENT = 'ssh-guard'

export default function IncidentsPage() {
  const health = useGet<ServerHealth>('/health/detailed')
  return (
    <Page title="Incidents and blocks" needs="viewer" actions={<Tabs label="List" tabs={tabs} />}>
      <Loaded data={health}>
        {({ agents }) =>
          agents.includes(AGENT) ? (
            <Chosen />
          ) : (
            <Empty title="The agent ssh-guard is not deployed, so there are no incidents and blocks.">
              <p class="quiet">Faults of Reflex itself are on the overview.</p>
            </Empty>
          )
        }
      </Loaded>
    </Page>
  )
}

function Chosen() {
  const tab = useTab(tabs.map(({ id }) => id))
  return tab === 'blocks' ? <Blocks /> : <Incidents state={tab} />
}
