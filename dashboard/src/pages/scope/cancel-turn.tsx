import { post } from '../../api/index.ts'
import { useAction } from '../../api/use-action.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { ErrorBox } from '../../ui/feedback.tsx'
import { notify } from '../../ui/notices.tsx'
import { fieldOf } from './words.ts'

type Cancelled = { cancelled: boolean; events: number }
type CancelProps = { path: string; onClose: () => void; onDone: () => void }

export function CancelTurn({ path, onClose, onDone }: CancelProps) {
  const cancel = useAction((reason: string) => post<Cancelled>(`${path}/cancel`, reason === '' ? {} : { reason }))
  const confirm = async (event: SubmitEvent) => {
    event.preventDefault()
    const answer = await cancel.run(fieldOf(event, 'reason'))
    if (!answer.ok) return
    const { cancelled, events } = answer.value
    notify(cancelled ? `The turn is cancelled; its ${events} events ended.` : 'No turn was in flight any more.')
    onClose()
    onDone()
  }
  return (
    <Dialog title="Cancel the turn in flight" onClose={onClose}>
      <form class="stack" onSubmit={(event) => void confirm(event)}>
        <p>Its events end as cancelled and are not considered again. Effects that it has made stay.</p>
        <label>
          Reason
          <input name="reason" maxLength={1000} placeholder="cancelled by an operator" />
        </label>
        {cancel.problem && <ErrorBox problem={cancel.problem} />}
        <button class="danger" disabled={cancel.busy}>
          Cancel the turn
        </button>
      </form>
    </Dialog>
  )
}
