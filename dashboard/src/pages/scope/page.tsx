import { useSignal } from '@preact/signals'
import type { ScopeCost } from '../../../../src/features/statistics/contract/cost.ts'
import type { ScopeState, ModelWait } from '../../../../src/contract/scope.ts'
import { hasRole, part, useGet, post } from '../../api/index.ts'
import { Loaded, ErrorBox } from '../../ui/feedback.tsx'
import { useScopeName } from '../../ui/links.tsx'
import { compact, count, money, percent, usd, counted } from '../../ui/numbers.ts'
import { Page } from '../../ui/page.tsx'
import { Tabs, useTab } from '../../ui/tabs.tsx'
import { Fact, Facts } from '../../ui/facts.tsx'
import { Text } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import { Log } from './log/log.tsx'
import { Chain } from './chain.tsx'
import { Context } from './context.tsx'
import { Events } from './events.tsx'
import { SendEvent } from './send-event.tsx'
import { SettingsForm } from './settings/settings.tsx'
import { Timers } from './timers.tsx'
import { useAction } from '../../api/use-action.ts'
import { Confirm } from '../../ui/confirm.tsx'
import { notify } from '../../ui/notices.tsx'

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
    done={({ cancelled, events }) => (cancelled ? `The turn is cancelled; its ${events} events ended.` : 'No turn was in flight any more.')}
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
      {tab === 'chain' && <Chain scope={scope} />}
      {tab === 'timers' && <Timers scope={scope} />}
      {tab === 'settings' && <Loaded data={state}>{({ settings }) => <SettingsForm path={path} settings={settings} />}</Loaded>}
    </Page>
  )
}

function Summary({ state, path, onAsked }: { state: ScopeState; path: string; onAsked: () => void }) {
  const { agent, inbox, turn, context, counters, sockets, parked, waiting_for_model: waits, outbox, llm_tokens_remaining, fired } = state
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
              ▸ {count(turn.events)} {turn.events === 1 ? 'event' : 'events'}, <Time at={turn.since} />
            </span>
          ) : (
            'None'
          )}
        </Fact>
        <Fact name="Context">{count(context.events)} events</Fact>
        <Fact name="Fire rate">
          {percent(fired.share)}{' '}
          <span class="quiet">
            {compact(fired.decided)} by reflexes, {compact(fired.model_calls)} model calls
          </span>
        </Fact>
        <Fact name="Accepted">{compact(counters.accepted)} events</Fact>
        <Fact name="Cost of the last day">{cost === undefined ? '–' : <CostOf cost={cost} />}</Fact>
        {sockets > 0 && <Fact name="Connections">{count(sockets)}</Fact>}
        {llm_tokens_remaining !== null && <Fact name="Token budget left">{compact(llm_tokens_remaining)}</Fact>}
      </Facts>
      {waits && <ModelAway waits={waits} path={path} onAsked={onAsked} />}
      {outbox.last_error !== null && (
        <p class="wait">
          {count(outbox.waiting)} changes wait to be replicated to D1: <Text text={outbox.last_error} />
        </p>
      )}
      {parked.length > 0 && <p class="bad">{count(parked.length)} pieces of work are parked after crashes and no longer start.</p>}
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
