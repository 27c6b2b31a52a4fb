import { useSignal } from '@preact/signals'
import { part, post, written } from '../../api/index.ts'
import { Confirm } from '../../ui/confirm.tsx'
import { Field } from '../../ui/form.tsx'
import { calledWith, WillHappen, type ShownApproval } from './will-happen.tsx'

export type DecideVerb = 'approve' | 'reject'

type DecideProps = { approval: ShownApproval; verdict: DecideVerb; onClose: () => void; onDecided: (approval: ShownApproval) => void }

/** Asks once more, with what will happen. The inputs of a run or a call may be changed first. */
export function Decide({ approval, verdict, onClose, onDecided }: DecideProps) {
  const { id, kind, inputs } = approval
  const verb = verdict === 'approve' ? 'Approve' : 'Reject'
  const isEditable = verdict === 'approve' && (kind === 'run' || kind === 'call')
  const text = useSignal(JSON.stringify(kind === 'call' ? calledWith(inputs).input : inputs, null, 2))
  const act = async (body: { reason?: string }) => {
    const edits = written(text.value)
    return edits.ok
      ? post<ShownApproval>(`/v1/approvals/${part(id)}/${verdict}`, { ...body, ...(isEditable && { edits: edits.value }) })
      : edits
  }
  return (
    <Confirm
      title={`${verb} ${approval.skill_id} in ${approval.scope}`}
      verb={verb}
      act={act}
      done={({ skill_id, status }) => `${skill_id}: ${status}`}
      onClose={onClose}
      onDone={onDecided}
      reason="Reason (optional)"
      dangerous={verdict === 'reject'}
    >
      {verdict === 'approve' ? <WillHappen approval={approval} /> : <p>It does not run. The log of the scope records the reason.</p>}
      {isEditable && <Field label="Inputs" rows={6} value={text.value} onInput={(value) => (text.value = value)} />}
    </Confirm>
  )
}
