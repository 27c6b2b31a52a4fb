import type { Feature } from '../../feature.ts'
import { CALLER } from '../../engine/upkeep/guard.ts'
import { Notices, raise } from './scope/notices.ts'
import { handleNotices } from './scope/send-notice.ts'
import type { Alert } from '../../contract/alert.ts'

declare module '../../contract/scope-api.ts' {
  interface FeatureCalls {
    /** Logs an alert of the deployment, and sends it to webhooks. False if it was raised before. */
    raise(alert: Alert): Promise<boolean>
  }
}

/** Notices to webhooks of what happens in scopes, and of alerts. */
export const notices = {
  name: 'notices',
  inScope: (scope) => {
    const notices = new Notices(scope)
    handleNotices({ ...scope, notices })
    return notices
  },
  calls: { raise: async ({ unit, database }, alert) => unit((work) => raise(work, database, alert), CALLER) },
} satisfies Feature
