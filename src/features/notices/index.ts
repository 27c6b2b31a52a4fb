import type { Feature } from '../../feature.ts'
import { raiseAlerts } from './events/alerts.ts'

/** Notices to webhooks of what happens in scopes, and alerts on the deployment. */
export const notices: Feature = {
  name: 'notices',
  sweeps: [{ name: 'raising alerts', run: raiseAlerts }],
}
