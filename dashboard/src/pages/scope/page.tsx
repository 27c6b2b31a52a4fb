import { useSignal } from '@preact/signals'
import type { ScopeCost } from '../../../../src/features/statistics/contract/cost.ts'
import type { ScopeState, ModelWait } from '../../../../src/contract/scope.ts'
import { hasRole, part, useGet, post, request, written } from '../../api/index.ts'
import { Loaded, ErrorBox } from '../../ui/feedback.tsx'
import { useScopeName, TraceLink } from '../../ui/links.tsx'
import { compact, count, money, percent, usd, counted } from '../../ui/numbers.ts'
import { Page, NeedsRole, Section } from '../../ui/page.tsx'
import { Tabs, useTab } from '../../ui/tabs.tsx'
import { Fact, Facts } from '../../ui/facts.tsx'
import { Text } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import { Log } from './log/log.tsx'
import { Chain } from './chain.tsx'
import { Context } from './context.tsx'
import { Events, Fate } from './events.tsx'
import { SettingsForm } from './settings/settings.tsx'
import { Pause } from './switches.tsx'
import { useAction } from '../../api/use-action.ts'
import { Confirm } from '../../ui/confirm.tsx'
import { notify } from '../../ui/notices.tsx'
import type { EventReceipt, EventRecord } from '../../../../src/contract/event-record.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { Status } from '../../ui/status.tsx'
import { fieldOf, ownFields } from './words.ts'
import * as lists from '../../../../src/contract/lists/scopes.ts'
import type { Timer } from '../../../../src/contract/settings/schedule.ts'
import { Select } from '../../ui/form.tsx'
import { List, Rows, useList } from '../../ui/list.tsx'

function Timers({ scope }: { scope: string }) {
  const path = `/v1/scopes/${part(scope)}/timers`
  const may = hasRole('operator')
  const timers = useList<Timer>(lists.timers, may ? { scope } : null, 5000)
  const remove = useAction((name: string) => request<void>('DELETE', `${path}/${part(name)}`))
  if (!may) return <NeedsRole {...{ role: 'operator', what: 'Timers' }} />
  const cancel = async (name: string) => {
    const answer = await remove.run(name)
    if (answer.ok) notify(`The timer ${name} is cancelled.`)
    timers.reload()
  }
  return (
    <>
      <ErrorBox problem={remove.problem} />
      <Rows
        of={lists.timers}
        label="Timers"
        pages={timers}
        own={[
          {
            title: 'Actions',
            cell: ({ name }) => (
              <button type="button" class="plain" aria-label={`Cancel the timer ${name}`} onClick={() => void cancel(name)}>
                Cancel
              </button>
            ),
            width: 7,
          },
        ]}
        empty="No timer is set."
      >
        <p>A timer sends timer.tick at an interval, by a cron expression, or once.</p>
      </Rows>
      <SetTimer path={path} onDone={timers.reload} />
    </>
  )
}

type Kind = 'every_s' | 'cron' | 'at'
const kinds: Record<Kind, { text: string; label: string; placeholder?: string }> = {
  every_s: { text: 'at an interval', label: 'Seconds between ticks', placeholder: '60' },
  cron: { text: 'by a cron expression', label: 'Cron expression, in UTC', placeholder: '0 6 * * *' },
  at: { text: 'once', label: 'Time, in your time zone' },
}

const types = { every_s: { type: 'number', min: 1, step: 'any' }, cron: {}, at: { type: 'datetime-local' } } as const

function SetTimer({ path, onDone }: { path: string; onDone: () => void }) {
  const kind = useSignal<Kind>('every_s')
  const save = useAction(({ name, schedule }: { name: string; schedule: unknown }) =>
    request<Timer>('PUT', `${path}/${part(name)}`, { body: schedule }),
  )
  const { label, placeholder } = kinds[kind.value]
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const form = event.currentTarget as HTMLFormElement
    const name = fieldOf(event, 'name')
    const when = fieldOf(event, 'when')
    const value = kind.value === 'every_s' ? Number(when) : kind.value === 'at' ? new Date(when).toISOString() : when
    const answer = await save.run({ name, schedule: { [kind.value]: value } })
    if (!answer.ok) return
    notify(`The timer ${name} is set.`)
    form.reset()
    onDone()
  }
  return (
    <Section title="Set a timer">
      <form class="stack card" onSubmit={(event) => void submit(event)}>
        <label>
          Name
          <input name="name" required maxLength={64} pattern="[A-Za-z0-9._:\-]+" placeholder="daily-report" />
        </label>
        <Select
          stacked
          label="It ticks"
          value={kind.value}
          options={Object.fromEntries(Object.entries(kinds).map(([id, { text }]) => [id, text]))}
          onChange={(id) => (kind.value = id as Kind)}
        />
        <label key={kind.value}>
          {label}
          <input name="when" required placeholder={placeholder ?? ''} {...types[kind.value]} />
        </label>
        <ErrorBox problem={save.problem} />
        <div>
          <button class="primary" disabled={save.busy}>
            Set the timer
          </button>
        </div>
      </form>
    </Section>
  )
}

type Receipt = Pick<EventReceipt, 'id' | 'trace_id' | 'status'>
const ASK_MS = 500
const EXAMPLE = { connection_id: 'dashboard', content: 'Hello' }

/** Sends an event of a recent type, and shows its receipt and then its outcome. */
function SendEvent({ scope, onClose }: { scope: string; onClose: () => void }) {
  const path = `/v1/scopes/${part(scope)}/events`
  const recent = useGet<{ items: EventRecord[] }>(`${path}?limit=50`)
  const receipt = useSignal<Receipt | null>(null)
  const send = useAction(async ({ type, fields }: { type: string; fields: string }) => {
    const json = written(fields)
    return json.ok ? post<{ events: Receipt[] }>(path, { ...(json.value as object), type }) : json
  })
  const samples = new Map((recent.value?.items ?? []).toReversed().map(({ event }): [string, EventRecord['event']] => [event.type, event]))
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    receipt.value = null
    const answer = await send.run({ type: fieldOf(event, 'type'), fields: fieldOf(event, 'fields') })
    if (answer.ok) receipt.value = answer.value.events[0] ?? null
  }
  /** The fields of the last event of a type are a start. */
  const prefill = ({ value, form }: HTMLInputElement) => {
    const sample = samples.get(value)
    const fields = form?.elements.namedItem('fields')
    if (sample && fields instanceof HTMLTextAreaElement) fields.value = JSON.stringify(ownFields(sample), null, 2)
  }
  return (
    <Dialog title="Send an event" onClose={onClose}>
      {hasRole('publisher') ? (
        <form class="stack" onSubmit={(event) => void submit(event)}>
          <label>
            Type
            <input
              name="type"
              required
              maxLength={128}
              list="recent-types"
              defaultValue="ws.message"
              onChange={({ currentTarget }) => prefill(currentTarget)}
            />
            <datalist id="recent-types">
              {Array.from(samples.keys(), (type) => (
                <option key={type} value={type} />
              ))}
            </datalist>
          </label>
          <label>
            Its fields, as JSON
            <textarea name="fields" rows={8} spellcheck={false} defaultValue={JSON.stringify(EXAMPLE, null, 2)} />
          </label>
          <ErrorBox problem={send.problem} />
          <div>
            <button class="primary" disabled={send.busy}>
              Send
            </button>
          </div>
          {receipt.value && <Sent key={receipt.value.id} path={path} receipt={receipt.value} />}
        </form>
      ) : (
        <NeedsRole {...{ role: 'publisher', what: 'Sending events' }} />
      )}
    </Dialog>
  )
}

function Sent({ path, receipt: { id, trace_id, status } }: { path: string; receipt: Receipt }) {
  const isEnded = useSignal(false)
  const { value: record, problem } = useGet<EventRecord>(`${path}/${part(id)}`, isEnded.value ? {} : { every_ms: ASK_MS })
  isEnded.value = record !== undefined && record.outcome !== null
  return (
    <div class="card" role="status">
      <p>
        Receipt: {status}, id <code>{id}</code>. <TraceLink id={trace_id} text="Trace" />
      </p>
      <ErrorBox problem={problem} />
      {record && (
        <p>
          <Status status={record.status} /> <Fate record={record} />
        </p>
      )}
    </div>
  )
}

type AwayProps = { waits: ModelWait; path: string; onAsked: () => void }

/** Why the scope waits for the model, when it asks again, and a way to ask at once. */
function ModelAway({ waits: { since, until, tries, detail }, path, onAsked }: AwayProps) {
  const ask = useAction(() => post<{ asked: boolean }>(`${path}/ask-model`, {}))
  const mayAsk = hasRole('operator')
  const now = async () => {
    const answer = await ask.run(undefined)
    if (!answer.ok) return
    notify(answer.value.asked ? 'The scope asks the model now.' : 'The scope did not wait for the model any more.')
    onAsked()
  }
  return (
    <div class="wait">
      <p>
        The model provider is unavailable since <Time at={since} />, {counted(tries, 'turn')} failed: <Text text={detail} />
      </p>
      <p class="actions">
        <span>
          It asks again <Time at={until} />.
        </span>
        <button
          type="button"
          disabled={!mayAsk || ask.busy}
          title={mayAsk ? '' : 'This needs the role operator.'}
          onClick={() => void now()}
        >
          Ask now
        </button>
      </p>
      <ErrorBox problem={ask.problem} />
    </div>
  )
}

type Cancelled = { cancelled: boolean; events: number }
type CancelProps = { path: string; onClose: () => void; onDone: () => void }

const CancelTurn = ({ path, onClose, onDone }: CancelProps) => (
  <Confirm
    title="Cancel the turn in flight"
    verb="Cancel the turn"
    act={(body) => post<Cancelled>(`${path}/cancel`, body)}
    done={({ cancelled, events }) =>
      cancelled ? `The turn is cancelled; its ${counted(events, 'event')} ended.` : 'No turn was in flight any more.'
    }
    onClose={onClose}
    onDone={onDone}
    reason="Reason (optional)"
  >
    <p>Its events end as cancelled and are not considered again. Effects that it has made stay.</p>
  </Confirm>
)

const REFRESH_MS = 2000
const COST_MS = 60_000

const tabs = [
  { id: 'log', text: 'Log' },
  { id: 'events', text: 'Events' },
  { id: 'context', text: 'Context' },
  { id: 'chain', text: 'Chain' },
  { id: 'tools', text: 'Tools' },
  { id: 'timers', text: 'Timers' },
  { id: 'settings', text: 'Settings' },
]

export default function ScopePage() {
  const scope = useScopeName()
  return <OneScope key={scope} scope={scope} />
}

function OneScope({ scope }: { scope: string }) {
  const path = `/v1/scopes/${part(scope)}`
  const state = useGet<ScopeState>(path, { every_ms: REFRESH_MS })
  const tab = useTab(tabs.map(({ id }) => id))
  const open = useSignal<'send' | 'cancel' | null>(null)
  const hasTurn = (state.value?.turn ?? null) !== null
  const mayCancel = hasRole('operator')
  const close = () => (open.value = null)
  return (
    <Page
      title={scope}
      path={<a href="/scopes">Scopes</a>}
      needs="viewer"
      actions={
        <>
          <button type="button" class="primary" onClick={() => (open.value = 'send')}>
            Send an event
          </button>
          <button
            type="button"
            class="danger"
            disabled={!hasTurn || !mayCancel}
            title={mayCancel ? (hasTurn ? '' : 'No turn is in flight.') : 'This needs the role operator.'}
            onClick={() => (open.value = 'cancel')}
          >
            Cancel the turn
          </button>
          {state.value && <Pause path={path} settings={state.value.settings} onDone={state.reload} />}
        </>
      }
    >
      {open.value === 'send' && <SendEvent scope={scope} onClose={close} />}
      {open.value === 'cancel' && <CancelTurn path={path} onClose={close} onDone={state.reload} />}
      <Loaded data={state}>{(value) => <Summary state={value} path={path} onAsked={state.reload} />}</Loaded>
      <Tabs label="Parts of the scope" tabs={tabs} />
      {tab === 'log' && <Log scope={scope} />}
      {tab === 'events' && <Events scope={scope} />}
      {tab === 'context' && <Context scope={scope} newest={state.value?.last_seq ?? 0} />}
      {tab === 'chain' && <Chain scope={scope} switches={state.value && { path, settings: state.value.settings, onDone: state.reload }} />}
      {tab === 'tools' && <List of={lists.tools} label="Tools" fields={{ scope }} empty="No tools." />}
      {tab === 'timers' && <Timers scope={scope} />}
      {tab === 'settings' && <Loaded data={state}>{({ settings }) => <SettingsForm path={path} settings={settings} />}</Loaded>}
    </Page>
  )
}

function Summary({ state, path, onAsked }: { state: ScopeState; path: string; onAsked: () => void }) {
  const {
    agent,
    inbox,
    turn,
    context,
    counters,
    sockets,
    parked,
    waiting_for_model: waits,
    outbox,
    llm_tokens_remaining,
    budget_problem,
    fired,
    settings,
  } = state
  const { value: cost } = useGet<ScopeCost>(`${path}/cost?bucket=hour`, { every_ms: COST_MS })
  return (
    <div class="card">
      <Facts>
        <Fact name="Agent">
          <bdi>{agent}</bdi>
        </Fact>
        <Fact name="Inbox">
          {count(inbox.pending)} pending, {count(inbox.processing)} in progress, {count(inbox.delayed)} delayed
        </Fact>
        <Fact name="Turn in flight">
          {turn ? (
            <span class="run">
              ▸ {counted(turn.events, 'event')}, <Time at={turn.since} />
            </span>
          ) : (
            'None'
          )}
        </Fact>
        <Fact name="Context">{counted(context.events, 'event')}</Fact>
        <Fact name="Fire rate">
          {percent(fired.share)}{' '}
          <span class="quiet">
            {compact(fired.decided)} by reflexes, {counted(fired.model_calls, 'model call')}
          </span>
        </Fact>
        <Fact name="Accepted">{counted(counters.accepted, 'event')}</Fact>
        <Fact name="Cost of the last day">{cost === undefined ? '–' : <CostOf cost={cost} />}</Fact>
        {sockets > 0 && <Fact name="Connections">{count(sockets)}</Fact>}
        {llm_tokens_remaining !== null && <Fact name="Token budget left">{compact(llm_tokens_remaining)}</Fact>}
      </Facts>
      {settings.paused && <p class="wait">! The scope is paused: its events wait.</p>}
      {waits && <ModelAway waits={waits} path={path} onAsked={onAsked} />}
      {budget_problem !== null && (
        <p class="bad">
          No model call: <Text text={budget_problem} />
        </p>
      )}
      {outbox.last_error !== null && (
        <p class="wait">
          {count(outbox.waiting)} changes wait to be replicated to D1: <Text text={outbox.last_error} />
        </p>
      )}
      {parked.length > 0 && <p class="bad">{count(parked.length)} pieces of work are parked after crashes.</p>}
    </div>
  )
}

function CostOf({
  cost: {
    total_usd: { low, high },
    model_usd,
    saved_usd,
    basis,
    counts: { unpriced_model_calls: unpriced },
  },
}: {
  cost: ScopeCost
}) {
  return (
    <span title={basis}>
      {usd(low)} to {usd(high)}
      <span class="quiet">
        {' '}
        (models {money(model_usd, unpriced)}, saved {usd(saved_usd)}; {usd(high * 30)} a month
        {unpriced > 0 && ', without the calls of unknown price'})
      </span>
    </span>
  )
}
