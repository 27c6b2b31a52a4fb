import { writeFileSync } from 'node:fs'
import path from 'node:path'
import type { TestProject } from 'vitest/node'
import { unstable_getMiniflareWorkerOptions as optionsOf } from 'wrangler'
import { buildDashboard } from '../../cli/lib/dashboard.ts'
import { bundle, migrate } from '../../cli/lib/local-server.ts'
import { packageFolder } from '../../cli/lib/package.ts'
import { temporaryFolder } from '../../cli/lib/temporary-folder.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** State of a server whose D1 has all migrations. Each server gets a copy. */
    migrated: string
    /** Folder for the state that the demo leaves. The first file that needs it fills it. */
    demo: string
  }
}

/** Once for all test files: they would build and migrate at the same time. */
export default async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const [migrated, demo, built] = [temporaryFolder('reflex-migrated-'), temporaryFolder('reflex-demo-'), temporaryFolder('reflex-built-')]
  // First: a bundle has what the dashboard's build writes.
  await buildDashboard()
  await Promise.all([bundle(built.path), migrate({ persist_to: migrated.path })])
  writeFileSync(path.join(built.path, 'options.json'), JSON.stringify(optionsOf(path.join(packageFolder, 'wrangler.toml')).workerOptions))
  Object.assign(process.env, { REFLEX_SERVER: path.join(import.meta.dirname, 'serve.ts'), REFLEX_BUILT: built.path })
  provide('migrated', migrated.path)
  provide('demo', demo.path)
  return async () => {
    for (const folder of [migrated, demo, built]) folder.remove()
  }
}
