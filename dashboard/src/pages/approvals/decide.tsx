import { part, post } from '../../api/index.ts'
import { Confirm } from '../../ui/confirm.tsx'
import { WillHappen, type ShownApproval } from './will-happen.tsx'

export type DecideVerb = 'approve' | 'reject'

type DecideProps = { approval: ShownApproval; verdict: DecideVerb; onClose: () => void; onDecided: (approval: ShownApproval) => void }

/** Asks once more, with what will happen. */
export function Decide({ approval, verdict, onClose, onDecided }: DecideProps) {
  const verb = verdict === 'approve' ? 'Approve' : 'Reject'
  return (
    <Confirm
      title={`${verb} ${approval.skill_id} in ${approval.scope}`}
      verb={verb}
      act={(body) => post<ShownApproval>(`/v1/approvals/${part(approval.id)}/${verdict}`, body)}
      done={({ skill_id, status }) => `${skill_id}: ${status}`}
      onClose={onClose}
      onDone={onDecided}
      reason="Reason (optional)"
      dangerous={verdict === 'reject'}
    >
      {verdict === 'approve' ? <WillHappen approval={approval} /> : <p>It does not run. The log of the scope records the reason.</p>}
    </Confirm>
  )
}
