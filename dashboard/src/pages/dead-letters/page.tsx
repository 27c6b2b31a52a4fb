import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { z } from 'zod'
import type { deadLetterGroup } from '../../../../src/contract/event-record.ts'
import { dead_letter_groups, dead_letters } from '../../../../src/contract/lists/deployment.ts'
import type { LetterJob } from '../../../../src/features/dead-letters/contract/jobs.ts'
import type { Pages } from '../../api/use-pages.ts'
import { Empty, Loaded, ErrorBox } from '../../ui/feedback.tsx'
import { columnsOf } from '../../ui/column.tsx'
import { useFilters } from '../../ui/filters.tsx'
import { Rows, useList } from '../../ui/list.tsx'
import { Page, Section } from '../../ui/page.tsx'
import { Table, type TableColumn } from '../../ui/table.tsx'
import { useSelection } from '../../ui/use-keys.ts'
import { type ListedDeadLetter, discard, retry } from './calls.ts'
import { part, post, query, useGet, written } from '../../api/index.ts'
import { useAction } from '../../api/use-action.ts'
import { Dialog, DialogActions } from '../../ui/dialog.tsx'
import { notify } from '../../ui/notices.tsx'
import { Json } from '../../ui/json.tsx'
import { TraceLink } from '../../ui/links.tsx'
import { Fact, Facts } from '../../ui/facts.tsx'
import { Text, visible } from '../../ui/text.tsx'

type LetterGroup = z.infer<typeof deadLetterGroup>
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

type Verb = LetterJob['verb']
/** `letters`: their number, as a person reads it. */
type Asked = { verb: Verb; letters: string; which: object }

type BulkProps = {
  letters: ListedDeadLetter[]
  all: ListedDeadLetter[]
  more: boolean
  filter: DeadLetterFilter
  onChoose: (ids: string[]) => void
  onDone: () => void
}
/** Acts on the chosen letters, or on all that the filter matches. */
function Bulk({ letters, all, more, filter, onChoose, onDone }: BulkProps) {
  const asking = useSignal<Asked | null>(null)
  const chosen = letters.length
  const ofChosen = (verb: Verb) => () => (asking.value = { verb, letters: String(chosen), which: { ids: letters.map(({ id }) => id) } })
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
        <button type="button" disabled={chosen === 0} onClick={ofChosen('retry')}>
          Retry {chosen} …
        </button>
        <button type="button" class="danger" disabled={chosen === 0} onClick={ofChosen('discard')}>
          Discard {chosen} …
        </button>
        {more && (
          <button type="button" onClick={() => (asking.value = { verb: 'retry', letters: 'all', which: given(filter) })}>
            Retry all that match …
          </button>
        )}
      </div>
      {asking.value && <Confirm asked={asking.value} onClose={() => (asking.value = null)} onDone={onDone} />}
    </>
  )
}

/** The groups of letters that share an error, each with what can be done with all of it. */
function Groups({ filter, onDone }: { filter: DeadLetterFilter; onDone: () => void }) {
  const asking = useSignal<Asked | null>(null)
  const { scope } = filter
  const pages = useList<LetterGroup>(dead_letter_groups, { ...(scope && { scope }) }, 10_000)
  const ask =
    (verb: Verb, { error, type, letters }: LetterGroup) =>
    () =>
      (asking.value = { verb, letters: String(letters), which: given({ scope, error, type: type ?? undefined }) })
  const own: TableColumn<LetterGroup>[] = [
    {
      title: 'Error',
      cell: ({ error, type }) => (
        <a href={`/dead-letters${query({ ...given({ scope, type: type ?? undefined }), error })}`}>{visible(error)}</a>
      ),
    },
    {
      title: 'All of them',
      width: 13,
      cell: (group) => (
        <div class="actions">
          <button type="button" aria-label={`Retry all: ${group.error}`} onClick={ask('retry', group)}>
            Retry …
          </button>
          <button type="button" class="danger" aria-label={`Discard all: ${group.error}`} onClick={ask('discard', group)}>
            Discard …
          </button>
        </div>
      ),
    },
  ]
  if (pages.items?.length === 0) return null
  return (
    <Section title="By error">
      <Rows of={dead_letter_groups} pages={pages} own={own} label="Groups" empty="There is no dead letter." />
      {asking.value && (
        <Confirm
          asked={asking.value}
          onClose={() => (asking.value = null)}
          onDone={() => {
            pages.reload()
            onDone()
          }}
        />
      )}
    </Section>
  )
}

const given = ({ scope, type, error }: DeadLetterFilter) => ({ ...(scope && { scope }), ...(type && { type }), ...(error && { error }) })

const POLL_MS = 500

/** Asks, starts a job on the server, and shows how far it is. The job needs nobody to watch it. */
function Confirm({ asked: { verb, letters, which }, onClose, onDone }: { asked: Asked; onClose: () => void; onDone: () => void }) {
  const started = useSignal<LetterJob | null>(null)
  const { run, busy, problem } = useAction(() => post<LetterJob>('/v1/dlq/jobs', { verb, ...which }))
  const path = started.value && `/v1/dlq/jobs/${part(started.value.id)}`
  const looked = useGet<LetterJob>(path, { every_ms: POLL_MS })
  const job = looked.value ?? started.value
  useEffect(() => {
    if (!job?.ended_at) return
    const failed = job.failed > 0 ? `. ${job.failed} could not be: ${job.error}` : ''
    notify(`${job.done} ${verb === 'retry' ? 'retried' : 'discarded'}, of ${job.total}${failed}`)
    onClose()
    onDone()
  }, [job?.ended_at])
  const start = async () => {
    const answer = await run(undefined)
    if (answer.ok) started.value = answer.value
  }
  return (
    <Dialog title={`${verb === 'retry' ? 'Retry' : 'Discard'} ${letters} dead letters?`} onClose={onClose}>
      <p>
        {verb === 'retry'
          ? 'Their events return to their scopes, with their attempts reset.'
          : 'They leave this list. Their events stay in their scopes, as dead letters.'}
      </p>
      <ErrorBox problem={problem ?? looked.problem} />
      <p role="status">{job && `${job.done + job.failed} of ${job.total}. The server continues if you leave.`}</p>
      <DialogActions
        verb={verb === 'retry' ? 'Retry' : 'Discard'}
        dangerous={verb !== 'retry'}
        isBusy={busy || job !== null}
        onClose={onClose}
        onAct={() => void start()}
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
      <Groups filter={filter} onDone={pages.reload} />
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
      <Empty title={Object.values(filter).some(Boolean) ? 'No dead letter matches the filter.' : 'There is no dead letter.'}>
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
