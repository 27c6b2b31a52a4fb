import { existsSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { packageFolder } from './package.ts'

const folder = join(packageFolder, 'dashboard')
const dist = join(folder, 'dist')
/** The sources of the page. `client` is what it follows scopes with. */
const SOURCES = ['dashboard/src', 'dashboard/public', 'dashboard/index.html', 'dashboard/vite.config.ts', 'client', 'package-lock.json']

/**
 * Builds the dashboard if it is not built, or if a source is newer. An installed package has it
 * built, and no sources.
 */
export async function buildDashboard(tell: (text: string) => void = () => {}): Promise<void> {
  if (!existsSync(join(folder, 'src')) || !isOld()) return
  tell('Building the dashboard …')
  const { build } = await import('vite')
  await build({ configFile: join(folder, 'vite.config.ts'), logLevel: 'warn' })
}

/** wrangler refuses to start without the folder; an empty one serves no page. */
export const ensureDashboardFolder = (): void => void mkdirSync(dist, { recursive: true })

function isOld(): boolean {
  const built = statSync(join(dist, 'index.html'), { throwIfNoEntry: false })?.mtimeMs
  return built === undefined || SOURCES.some((source) => newest(join(packageFolder, source)) > built)
}

function newest(path: string): number {
  const found = statSync(path, { throwIfNoEntry: false })
  if (!found) return 0
  if (!found.isDirectory()) return found.mtimeMs
  return Math.max(found.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))))
}
