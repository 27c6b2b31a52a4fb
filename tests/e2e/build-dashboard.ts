import { buildDashboard } from '../../cli/lib/dashboard.ts'

/** Once for all test files: they would build it at the same time. */
export default (): Promise<void> => buildDashboard()
