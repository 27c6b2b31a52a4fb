import { useSignal } from '@preact/signals'
import { ErrorBox } from '../../ui/feedback.tsx'
import { Json } from '../../ui/json.tsx'
import { TraceLink } from '../../ui/links.tsx'
import { notify } from '../../ui/notices.tsx'
import { Section } from '../../ui/page.tsx'
import { Fact, Facts } from '../../ui/facts.tsx'
import { Text, visible } from '../../ui/text.tsx'
import { dead_letters } from '../../../../src/contract/lists/deployment.ts'
import { columnsOf } from '../../ui/column.tsx'
import { useAction } from '../../api/use-action.ts'
import { discard, retry, type ListedDeadLetter } from './calls.ts'
import { part, post, type ApiProblem } from '../../api/index.ts'
import { Dialog, DialogActions } from '../../ui/dialog.tsx'

type Event = NonNullable<ListedDeadLetter['event']>
type EditProps = { letter: ListedDeadLetter; event: Event; onClose: () => void; onDone: () => void }

const notJson = (detail: string): ApiProblem => ({ type: 'about:blank', title: 'This is not JSON', status: 0, detail })

/** Sends a new event, edited from the event of the letter. It gets an id and a trace of its own. */
function EditCopy({ letter, event, onClose, onDone }: EditProps) {
  const { id: _id, meta: _meta, timestamp: _timestamp, scope, ...rest } = event
  const text = useSignal(JSON.stringify(rest, null, 2))
  const isDiscarded = useSignal(true)
  const flaw = useSignal<ApiProblem | null>(null)
  const { run, busy, problem } = useAction((body: unknown) => post<object>(`/v1/scopes/${part(scope)}/events`, body))
  const send = async (submitted: SubmitEvent) => {
    submitted.preventDefault()
    const parsed = parse(text.value)
    flaw.value = parsed.ok ? null : notJson(parsed.detail)
    if (!parsed.ok || !(await run(parsed.value)).ok) return
    if (isDiscarded.value) await discard(letter)
    notify('The copy was sent')
    onDone()
  }
  const shown = flaw.value ?? problem
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
        <ErrorBox problem={shown} />
        <DialogActions verb="Send the copy" isBusy={busy} onClose={onClose} />
      </form>
    </Dialog>
  )
}

function parse(text: string): { ok: true; value: unknown } | { ok: false; detail: string } {
  try {
    return { ok: true, value: JSON.parse(text) }
  } catch (error) {
    return { ok: false, detail: error instanceof Error ? error.message : String(error) }
  }
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
export function Letter({ letter, onDone }: { letter: ListedDeadLetter; onDone: () => void }) {
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
