import { useSignal } from '@preact/signals'
import { part, post, type Problem } from '../../api/index.ts'
import { useAction } from '../../api/use-action.ts'
import { Dialog, DialogActions } from '../../ui/dialog.tsx'
import { ErrorBox } from '../../ui/feedback.tsx'
import { notify } from '../../ui/notices.tsx'
import { discard } from './calls.ts'
import type { DeadLetter } from './page.tsx'

type Event = NonNullable<DeadLetter['event']>
type EditProps = { letter: DeadLetter; event: Event; onClose: () => void; onDone: () => void }

const notJson = (detail: string): Problem => ({ type: 'about:blank', title: 'This is not JSON', status: 0, detail })

/** Sends a new event, edited from that of the letter. It gets an id and a trace of its own. */
export function EditCopy({ letter, event, onClose, onDone }: EditProps) {
  const { id: _id, meta: _meta, timestamp: _timestamp, scope, ...rest } = event
  const text = useSignal(JSON.stringify(rest, null, 2))
  const isDiscarded = useSignal(true)
  const flaw = useSignal<Problem | null>(null)
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
        {shown && <ErrorBox problem={shown} />}
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
