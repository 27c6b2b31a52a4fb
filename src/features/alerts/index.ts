import { iso } from '../../base/time.ts'
import type { Alert } from '../../contract/alert.ts'
import type { Feature } from '../../feature.ts'
import { modelSilence } from '../../http/operations/health-report.ts'
import { storeOf } from '../../store/store.ts'
import { deadLetterAlerts, raiseAlerts } from './events/raise.ts'
import { alertRoutes } from './http.ts'
import { list } from './resources.ts'
import { alerts as table, forgetAlerts } from './store.ts'

const silenceAlert = (silence: { summary: string } | null, hour: number): Alert[] =>
  silence === null ? [] : [{ id: `model-silent:${iso(hour)}`, name: 'model-silent', summary: silence.summary, details: {} }]

/** Conditions of the deployment that somebody should know: found by the sweep, kept, and listed. */
export const alerts = {
  name: 'alerts',
  tables: { alerts: table },
  operations: [list],
  routes: () => [alertRoutes],
  alerts: async (env, { hour }) => [...(await deadLetterAlerts(env, hour)), ...silenceAlert(await modelSilence(storeOf(env)), hour)],
  sweeps: [{ name: 'raising alerts', run: raiseAlerts }],
  forgets: [{ name: 'alerts', kept: 'a year', forget: forgetAlerts }],
} satisfies Feature
