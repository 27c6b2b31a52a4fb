import { useSignal } from '@preact/signals'
import { part, post } from '../../api/index.ts'
import { useAction } from '../../api/use-action.ts'
import { Dialog, DialogActions } from '../../ui/dialog.tsx'
import { ErrorBox } from '../../ui/feedback.tsx'
import { WillHappen, type ShownApproval } from './will-happen.tsx'

export type DecideVerb = 'approve' | 'reject'

type DecideProps = { approval: ShownApproval; verdict: DecideVerb; onClose: () => void; onDecided: (approval: ShownApproval) => void }

/** Asks once more, with what will happen. Enter in the reason decides. */
export function Decide({ approval, verdict, onClose, onDecided }: DecideProps) {
  const reason = useSignal('')
  const { run, busy, problem } = useAction((text: string) =>
    post<ShownApproval>(`/v1/approvals/${part(approval.id)}/${verdict}`, text === '' ? {} : { reason: text }),
  )
  const decide = async (event: SubmitEvent) => {
    event.preventDefault()
    const answer = await run(reason.value.trim())
    if (answer.ok) onDecided(answer.value)
  }
  const isApproval = verdict === 'approve'
  return (
    <Dialog title={`${isApproval ? 'Approve' : 'Reject'} ${approval.skill_id} in ${approval.scope}`} onClose={onClose}>
      {isApproval ? <WillHappen approval={approval} /> : <p>It does not run. The log of the scope records the reason.</p>}
      <form class="stack" onSubmit={(event) => void decide(event)}>
        <label>
          Reason (optional)
          <input value={reason} maxLength={1000} onInput={({ currentTarget }) => (reason.value = currentTarget.value)} />
        </label>
        {problem && <ErrorBox problem={problem} />}
        <DialogActions verb={isApproval ? 'Approve' : 'Reject'} dangerous={!isApproval} isBusy={busy} onClose={onClose} />
      </form>
    </Dialog>
  )
}
