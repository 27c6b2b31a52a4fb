import type { ComponentChildren } from 'preact'
import type { Answer } from '../api/problem.ts'
import { submitted, useAction } from '../api/use-action.ts'
import { Dialog, DialogActions } from './dialog.tsx'
import { ErrorBox } from './feedback.tsx'
import { notify } from './notices.tsx'

type ConfirmProps<Value> = {
  title: string
  verb: string
  /** The body has the reason, if one was given. */
  act: (body: { reason?: string }) => Promise<Answer<Value>>
  /** The note that it was done. */
  done: (value: Value) => string
  onClose: () => void
  onDone?: (value: Value) => void
  /** The label of the field for a reason. Without a label, nobody is asked for one. */
  reason?: string
  dangerous?: boolean
  children: ComponentChildren
}

/** Asks once more, acts, and closes when it is done. Enter in the reason acts. */
export function Confirm<Value>({ title, verb, act, done, onClose, onDone, reason, dangerous = true, children }: ConfirmProps<Value>) {
  const { run, busy, problem } = useAction(act)
  const confirm = async (event: SubmitEvent) => {
    const text = submitted(event)('reason')
    const answer = await run(text === '' ? {} : { reason: text })
    if (!answer.ok) return
    notify(done(answer.value))
    onClose()
    onDone?.(answer.value)
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="stack" onSubmit={(event) => void confirm(event)}>
        {children}
        {reason !== undefined && (
          <label>
            {reason}
            <input name="reason" maxLength={1000} autocomplete="off" />
          </label>
        )}
        <ErrorBox problem={problem} />
        <DialogActions verb={verb} dangerous={dangerous} isBusy={busy} onClose={onClose} />
      </form>
    </Dialog>
  )
}
