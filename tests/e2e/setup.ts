import type { TestProject } from 'vitest/node'
import { buildDashboard } from '../../cli/lib/dashboard.ts'
import { migrate } from '../../cli/lib/local-server.ts'
import { temporaryFolder } from '../../cli/lib/temporary-folder.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** State of a server whose D1 has all migrations. Each server gets a copy. */
    migrated: string
  }
}

/** Once for all test files: they would build and migrate at the same time. */
export default async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const folder = temporaryFolder('reflex-migrated-')
  await Promise.all([buildDashboard(), migrate({ persist_to: folder.path })])
  provide('migrated', folder.path)
  return async () => folder.remove()
}
