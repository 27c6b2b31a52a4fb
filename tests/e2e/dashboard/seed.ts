import { runQuietly } from '../../../cli/demo/run-quietly.ts'
import type { Summary } from '../../../cli/demo/summary.ts'
import type { LocalServer } from '../../../cli/lib/local-server.ts'
import { ADMIN_KEY } from '../api.ts'

/** The state that `npm run demo` leaves. */
export const seedDemo = (server: LocalServer): Promise<Summary> => runQuietly(server, ADMIN_KEY)
