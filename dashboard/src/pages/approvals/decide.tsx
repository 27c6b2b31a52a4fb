import { useSignal } from '@preact/signals'
import { part, post, written } from '../../api/index.ts'
import { Confirm } from '../../ui/confirm.tsx'
import { Field } from '../../ui/form.tsx'
import { calledWith, callsOf, WillHappen, type ShownApproval } from './will-happen.tsx'

export type DecideVerb = 'approve' | 'reject'

type DecideProps = { approval: ShownApproval; verdict: DecideVerb; onClose: () => void; onDecided: (approval: ShownApproval) => void }

/** Asks once more, with what will happen. The inputs of a run or of calls may be changed first. */
export function Decide({ approval, verdict, onClose, onDecided }: DecideProps) {
  const { id, kind, inputs } = approval
  const verb = verdict === 'approve' ? 'Approve' : 'Reject'
  const isEditable = verdict === 'approve' && kind !== 'promotion' && kind !== 'activation' && kind !== 'payment'
  const { calls: _calls, ...numbered } = inputs
  const shown = kind === 'call' ? calledWith(inputs).input : kind === 'calls' ? numbered : inputs
  const text = useSignal(JSON.stringify(shown, null, 2))
  const left_out = useSignal<ReadonlySet<number>>(new Set())
  const toggle = (number: number) => {
    const next = new Set(left_out.value)
    if (!next.delete(number)) next.add(number)
    left_out.value = next
  }
  const act = async (body: { reason?: string }) => {
    const edits = written(text.value)
    if (!edits.ok) return edits
    const without = Object.fromEntries(Array.from(left_out.value, (number) => [number, null]))
    const changed = isEditable && { edits: { ...(edits.value as object), ...without } }
    return post<ShownApproval>(`/v1/approvals/${part(id)}/${verdict}`, { ...body, ...changed })
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
      {isEditable &&
        kind === 'calls' &&
        callsOf(approval).map(({ tool }, index) => (
          <label key={index} class="inline">
            <input type="checkbox" checked={!left_out.value.has(index + 1)} onChange={() => toggle(index + 1)} /> Make call {index + 1},{' '}
            <code>{tool}</code>
          </label>
        ))}
      {isEditable && <Field label="Inputs" rows={6} value={text.value} onInput={(value) => (text.value = value)} />}
    </Confirm>
  )
}
