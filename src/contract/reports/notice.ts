import type { Json } from '../../base/json.ts'
import type { NoticeType } from '../settings/webhooks.ts'

/** `id` stays the same over all attempts: a receiver recognizes duplicates by it. */
export type Notice = { id: string; type: NoticeType; at: number; data: Readonly<Record<string, Json>> }

export const alertNames = ['dead-letters', 'approval-waiting', 'budget-spent', 'reflex-demoted', 'database-unavailable'] as const
export type AlertName = (typeof alertNames)[number]
/** A condition of the deployment. `id` names the condition and its period: it is raised once. */
export type Alert = { id: string; name: AlertName; summary: string; details: Readonly<Record<string, Json>> }

export type NoticeEntry =
  /** The sweep found a condition of the deployment that somebody should know. */
  | ({ kind: 'alert-raised'; alert_id: string } & Omit<Alert, 'id'>)
  /** `failed`: given up after `attempts`. `dropped`: notices lost since the last such entry. */
  | {
      kind: 'notice-ended'
      notice_id: string
      notice_type: NoticeType
      webhook: string
      status: 'delivered' | 'failed'
      attempts: number
      http_status: number | null
      error: string | null
      dropped?: number
    }
