import { part, useGet } from '../../api/index.ts'
import { ErrorBox } from '../../ui/feedback.tsx'
import { Json } from '../../ui/json.tsx'
import { usd } from '../../ui/numbers.ts'
import { Status } from '../../ui/status.tsx'
import { Facts } from '../../ui/facts.tsx'
import type { TableColumn } from '../../ui/table.tsx'
import { Text } from '../../ui/text.tsx'
import type { DecideVerb } from './decide.tsx'
import { WillHappen, type ShownApproval } from './will-happen.tsx'

type DetailProps = { id: string; listed: ShownApproval | undefined; onDecide: (verdict: DecideVerb) => void }
const EVERY_MS = 2000

const facts: TableColumn<ShownApproval>[] = [
  { title: 'Status', of: (approval) => approval.status, kind: 'status' },
  { title: 'Scope', of: ({ scope }) => scope, kind: 'scope' },
  { title: 'Requested by', of: ({ requested_by }) => requested_by },
  { title: 'Requested', of: ({ created_at }) => created_at, kind: 'time' },
  { title: 'Expires', of: ({ status, expires_at }) => (status === 'pending' ? expires_at : null), kind: 'time' },
  { title: 'Decided', of: ({ status, decided_at }) => (status === 'pending' ? null : decided_at), kind: 'time' },
  { title: 'Decided by', of: ({ decided_by }) => decided_by },
]

/** An approval, and the run that followed. A link may name one that is not in the list. */
export function Detail({ id, listed, onDecide }: DetailProps) {
  const { value, problem, reload } = useGet<ShownApproval>(`/v1/approvals/${part(id)}`, { every_ms: EVERY_MS })
  const approval = value ?? listed
  if (!approval) return problem && <ErrorBox problem={problem} onRetry={reload} />
  const { inputs, why, status, reason } = approval
  return (
    <section class="card detail" aria-label="Approval">
      <div class="heading">
        <h2>
          {approval.skill_id} <span class="quiet">{approval.version}</span>
        </h2>
        {status === 'pending' && (
          <div class="actions">
            <button type="button" class="primary" onClick={() => onDecide('approve')}>
              Approve <kbd>a</kbd>
            </button>
            <button type="button" class="danger" onClick={() => onDecide('reject')}>
              Reject <kbd>r</kbd>
            </button>
          </div>
        )}
      </div>
      <Facts of={approval} columns={facts} />
      <h3>Why</h3>
      <p>
        <Text text={why} most={4000} />
      </p>
      {reason !== null && (
        <p>
          Reason of the decision: <Text text={reason} most={1000} />
        </p>
      )}
      <h3>Inputs</h3>
      <Json value={inputs} label="Inputs" />
      <h3>{status === 'pending' ? 'What will happen' : 'Plan'}</h3>
      <WillHappen approval={approval} />
      <Run approval={approval} />
    </section>
  )
}

function Run({ approval: { status, run } }: { approval: ShownApproval }) {
  if (status !== 'approved') return null
  return (
    <>
      <h3>The run</h3>
      {run === null ? (
        <p role="status">It has not started yet.</p>
      ) : (
        <>
          <p role="status">
            <Status status={run.status} /> {run.reason !== null && <Text text={run.reason} most={1000} />}{' '}
            <span class="quiet">{usd(run.cost_usd)}</span>
          </p>
          <ol class="steps">
            {[...run.steps, ...run.compensation].map(({ tool, status: end }, index) => (
              <li key={index}>
                <code>{tool}</code> <Status status={end} />
              </li>
            ))}
          </ol>
          <Json value={run.outputs} label="Outputs" />
        </>
      )}
    </>
  )
}
