import { iso } from '../../../base/time.ts'
import type { Alert } from '../../../contract/alert.ts'
import type { Env } from '../../../env.ts'
import { limitOf } from '../../../events/deployment.ts'
import { storeOf } from '../../../store/store.ts'
import { waitingApprovals } from '../store/approvals.ts'

const MINUTE_MS = 60_000
const DEFAULT_MINUTES = 60
const MOST_NAMED = 20

/** Says that approvals have waited for longer than the deployment's variable allows. */
export async function waitingAlerts(env: Env, { now, hour }: { now: number; hour: number }): Promise<Alert[]> {
  const minutes = limitOf(env.REFLEX_ALERT_APPROVAL_MINUTES, DEFAULT_MINUTES)
  const found = await waitingApprovals(storeOf(env), { before: now - minutes * MINUTE_MS, now, limit: MOST_NAMED })
  return waitingAlert(found, { minutes, hour })
}

/** `approvals`: oldest first. */
export function waitingAlert(
  approvals: readonly { id: string; scope: string; created_at: number }[],
  { minutes, hour }: { minutes: number; hour: number },
): Alert[] {
  const [oldest] = approvals
  if (!oldest) return []
  return [
    {
      id: `approval-waiting:${iso(hour)}`,
      name: 'approval-waiting',
      summary: `${countText(approvals.length)} waited for more than ${Math.round(minutes)} minutes`,
      details: { approvals: approvals.map(({ id, scope }) => ({ id, scope })), oldest_at: iso(oldest.created_at) },
    },
  ]
}

const countText = (count: number): string =>
  count === 1 ? '1 approval has' : `${count}${count === MOST_NAMED ? ' or more' : ''} approvals have`
