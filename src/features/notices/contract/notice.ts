import type { Json } from '../../../base/json.ts'
import type { Alert } from '../../../contract/alert.ts'
import type { NoticeType } from './setting.ts'

/** `id` stays the same over all attempts: a receiver recognizes duplicates by it. */
export type Notice = { id: string; type: NoticeType; at: number; data: Readonly<Record<string, Json>> }

/**
 * A notice that reaches a hook becomes an event, whose end is a notice again. After so many of them
 * none is sent: it is a loop.
 */
export const MOST_HOPS = 10

/** `hops`: this notice and those that stand behind its event. The id is signed with the body. */
export const noticeId = (hops: number): string => `ntc_${crypto.randomUUID()}_h${hops}`

const NOTICE = /^ntc_[0-9a-f-]{36}(?:_h(\d{1,3}))?$/
/** The notices behind a delivery, by its id; 0 for other deliveries. Older ids have no number. */
export const hopsOfDelivery = (delivery: string): number => {
  const found = NOTICE.exec(delivery)
  return found ? Number(found[1] ?? 1) : 0
}

/** The key of a hook's events. It is part of their sender, which what they cause has as well. */
export const hookKey = (address: string, delivery: string): string => {
  const hops = hopsOfDelivery(delivery)
  return `hook:${address}${hops === 0 ? '' : `#h${hops}`}`
}
/** The notices behind an event, by its sender. */
export const hopsOfSender = (sender: string): number => Number(/^key:hook:[^#]*#h(\d{1,3})$/.exec(sender)?.[1] ?? 0)

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
