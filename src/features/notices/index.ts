import type { Feature } from '../../feature.ts'
import { CALLER } from '../../engine/upkeep/guard.ts'
import { raiseAlerts } from './events/alerts.ts'
import { Notices, raise } from './scope/notices.ts'
import { handleNotices } from './scope/send-notice.ts'

/** Notices to webhooks of what happens in scopes, and alerts on the deployment. */
export const notices: Feature = {
  name: 'notices',
  inScope: (scope) => {
    const notices = new Notices(scope)
    handleNotices({ ...scope, notices })
    return notices
  },
  calls: { raise: async ({ unit, database }, alert) => unit((work) => raise(work, database, alert), CALLER) },
  sweeps: [{ name: 'raising alerts', run: raiseAlerts }],
}
