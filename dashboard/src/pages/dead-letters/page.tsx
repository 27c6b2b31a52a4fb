import { useSignal } from '@preact/signals'
import { dead_letters } from '../../../../src/contract/lists/deployment.ts'
import type { Pages } from '../../api/use-pages.ts'
import { Empty, Loaded, ErrorBox } from '../../ui/feedback.tsx'
import { columnsOf } from '../../ui/column.tsx'
import { useFilters } from '../../ui/filters.tsx'
import { useList } from '../../ui/list.tsx'
import { Page, Section } from '../../ui/page.tsx'
import { Table, type TableColumn } from '../../ui/table.tsx'
import { useSelection } from '../../ui/use-keys.ts'
import { type ListedDeadLetter, discard, retry } from './calls.ts'
import { post, type Answer, type ApiProblem, part, written } from '../../api/index.ts'
import { useAction } from '../../api/use-action.ts'
import { Dialog, DialogActions } from '../../ui/dialog.tsx'
import { notify } from '../../ui/notices.tsx'
import { Json } from '../../ui/json.tsx'
import { TraceLink } from '../../ui/links.tsx'
import { Fact, Facts } from '../../ui/facts.tsx'
import { Text, visible } from '../../ui/text.tsx'

type Event = NonNullable<ListedDeadLetter['event']>
type EditProps = { letter: ListedDeadLetter; event: Event; onClose: () => void; onDone: () => void }

/** Sends a new event, edited from the event of the letter. It gets an id and a trace of its own. */
function EditCopy({ letter, event, onClose, onDone }: EditProps) {
  const { id: _id, meta: _meta, timestamp: _timestamp, scope, ...rest } = event
  const text = useSignal(JSON.stringify(rest, null, 2))
  const isDiscarded = useSignal(true)
  const { run, busy, problem } = useAction(async (event: string) => {
    const json = written(event)
    return json.ok ? post<object>(`/v1/scopes/${part(scope)}/events`, json.value) : json
  })
  const send = async (submitted: SubmitEvent) => {
    submitted.preventDefault()
    if (!(await run(text.value)).ok) return
    if (isDiscarded.value) await discard(letter)
    notify('The copy was sent')
    onDone()
  }
  return (
    <Dialog title={`Edit a copy for ${scope}`} onClose={onClose} wide>
      <form class="stack" onSubmit={(submitted) => void send(submitted)}>
        <label>
          Event, as JSON
          <textarea rows={14} spellcheck={false} value={text} onInput={({ currentTarget }) => (text.value = currentTarget.value)} />
        </label>
        <label class="inline">
          <input type="checkbox" checked={isDiscarded} onChange={({ currentTarget }) => (isDiscarded.value = currentTarget.checked)} />
          Discard the dead letter once the copy is accepted
        </label>
        <ErrorBox problem={problem} />
        <DialogActions verb="Send the copy" isBusy={busy} onClose={onClose} />
      </form>
    </Dialog>
  )
}

const givenUpBy = {
  scope: 'the scope',
  queue: 'the queue: delivery to the scope failed',
  market: 'the market: the goods of a deal could not be delivered',
}

const facts = [
  ...columnsOf<ListedDeadLetter>(dead_letters).filter(({ title }) => title !== 'Error'),
  { title: 'Given up by', of: ({ origin }: ListedDeadLetter) => givenUpBy[origin] },
]

/** A dead letter: why it is one, the event, and what can be done. */
function Letter({ letter, onDone }: { letter: ListedDeadLetter; onDone: () => void }) {
  const { event, payload, error, stack } = letter
  const editing = useSignal(false)
  return (
    <section class="card detail" aria-label="Dead letter">
      <div class="heading">
        <h2>{letter.type ?? 'A message that is not an event'}</h2>
        <Actions letter={letter} onEdit={() => (editing.value = true)} onDone={onDone} />
      </div>
      <Facts of={letter} columns={facts}>
        {event && (
          <Fact name="Trace">
            <TraceLink id={event.meta.trace_id} text="What happened" />
          </Fact>
        )}
      </Facts>
      <Section title="Why">
        <pre class="wrap bad">{visible(error)}</pre>
        {stack !== null && (
          <details>
            <summary>Stack trace</summary>
            <pre class="wrap">{visible(stack)}</pre>
          </details>
        )}
      </Section>
      <Section title={event ? 'Event' : 'Message'}>
        {event ? <Json value={event} open={2} label="Event" /> : <Text text={payload ?? ''} most={5000} />}
      </Section>
      {editing.value && event && <EditCopy letter={letter} event={event} onClose={() => (editing.value = false)} onDone={onDone} />}
    </section>
  )
}

type ActionsProps = { letter: ListedDeadLetter; onEdit: () => void; onDone: () => void }

function Actions({ letter, onEdit, onDone }: ActionsProps) {
  const retrying = useAction(() => retry(letter))
  const discarding = useAction(() => discard(letter))
  const problem = retrying.problem ?? discarding.problem
  const act = async ({ run }: typeof retrying | typeof discarding, text: string) => {
    if (!(await run(undefined)).ok) return
    notify(text)
    onDone()
  }
  return (
    <>
      <div class="actions">
        <button
          type="button"
          class="primary"
          disabled={retrying.busy || !(letter.event || letter.origin === 'market')}
          onClick={() => void act(retrying, 'Retried. It comes back here if it fails again.')}
        >
          Retry
        </button>
        <button type="button" disabled={!letter.event} onClick={onEdit}>
          Edit a copy …
        </button>
        <button type="button" class="danger" disabled={discarding.busy} onClick={() => void act(discarding, 'Discarded')}>
          Discard
        </button>
      </div>
      <ErrorBox problem={problem} />
    </>
  )
}

type DeadLetterFilter = Readonly<Record<string, string | undefined>>

type BulkProps = {
  letters: ListedDeadLetter[]
  all: ListedDeadLetter[]
  more: boolean
  filter: DeadLetterFilter
  onChoose: (ids: string[]) => void
  onDone: () => void
}
type Retried = { retried: number; failed: { id: string; reason: string }[] }
const MOST = 1000

/** Acts on the chosen letters, or retries all that the filter matches. */
function Bulk({ letters, all, more, filter, onChoose, onDone }: BulkProps) {
  const asking = useSignal<'retry' | 'discard' | null>(null)
  const chosen = letters.length
  const retryAll = useAction(() => post<Retried>('/v1/dlq/retry', { ...given(filter), limit: MOST }))
  const runAll = async () => {
    const answer = await retryAll.run(undefined)
    if (!answer.ok) return
    notify(`${answer.value.retried} retried, ${answer.value.failed.length} could not be`)
    onDone()
  }
  return (
    <>
      <div class="actions">
        <label class="inline">
          <input
            type="checkbox"
            checked={chosen === all.length}
            onChange={({ currentTarget }) => onChoose(currentTarget.checked ? all.map(({ id }) => id) : [])}
          />
          All {all.length}
          {more ? '+' : ''} shown
        </label>
        <button type="button" disabled={chosen === 0} onClick={() => (asking.value = 'retry')}>
          Retry {chosen} …
        </button>
        <button type="button" class="danger" disabled={chosen === 0} onClick={() => (asking.value = 'discard')}>
          Discard {chosen} …
        </button>
        {more && (
          <button type="button" disabled={retryAll.busy} onClick={() => void runAll()}>
            Retry the newest {MOST} that match
          </button>
        )}
      </div>
      <ErrorBox problem={retryAll.problem} />
      {asking.value && (
        <Confirm
          verb={asking.value}
          letters={letters}
          onClose={() => (asking.value = null)}
          onDone={() => {
            asking.value = null
            onDone()
          }}
        />
      )}
    </>
  )
}

const given = ({ scope, type }: DeadLetterFilter) => ({ ...(scope && { scope }), ...(type && { type }) })

type ConfirmProps = { verb: 'retry' | 'discard'; letters: ListedDeadLetter[]; onClose: () => void; onDone: () => void }

function Confirm({ verb, letters, onClose, onDone }: ConfirmProps) {
  const done = useSignal(0)
  const problem = useSignal<ApiProblem | null>(null)
  const isBusy = useSignal(false)
  const run = async () => {
    isBusy.value = true
    for (const letter of letters.slice(done.value)) {
      const answer: Answer<unknown> = await (verb === 'retry' ? retry(letter) : discard(letter))
      if (!answer.ok && answer.problem.status !== 404) {
        problem.value = answer.problem
        break
      }
      done.value += 1
    }
    isBusy.value = false
    if (done.value < letters.length) return
    notify(`${done.value} ${verb === 'retry' ? 'retried' : 'discarded'}`)
    onDone()
  }
  return (
    <Dialog title={`${verb === 'retry' ? 'Retry' : 'Discard'} ${letters.length} dead letters?`} onClose={onClose}>
      <p>
        {verb === 'retry'
          ? 'Their events return to their scopes, with their attempts reset.'
          : 'They leave this list. Their events stay in their scopes, as dead letters.'}
      </p>
      <ErrorBox problem={problem.value} />
      <p role="status">{isBusy.value && `${done.value} of ${letters.length}`}</p>
      <DialogActions
        verb={verb === 'retry' ? 'Retry' : 'Discard'}
        dangerous={verb !== 'retry'}
        isBusy={isBusy}
        onClose={onClose}
        onAct={() => void run()}
      />
    </Dialog>
  )
}

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
