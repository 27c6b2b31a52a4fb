import { execFile } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { packageFolder } from './package.ts'

const folder = join(packageFolder, 'dashboard')
const dist = join(folder, 'dist')
/** The sources of the page. `client` is what it follows scopes with. */
const SOURCES = [
  'docs',
  'README.md',
  'dashboard/documentation',
  'dashboard/src',
  'dashboard/public',
  'dashboard/index.html',
  'dashboard/vite.config.ts',
  'client',
  'package-lock.json',
]

/**
 * Builds the dashboard if it is not built, or if a source is newer. An installed package has it
 * built, and no sources.
 */
export async function buildDashboard(tell: (text: string) => void = () => {}): Promise<void> {
  if (!existsSync(join(folder, 'src')) || !isOld()) return
  tell('Building the dashboard …')
  // Not in this process: Vite builds for tests where NODE_ENV says so.
  const vite = join(dirname(createRequire(import.meta.url).resolve('vite/package.json')), 'bin/vite.js')
  await promisify(execFile)(process.execPath, [vite, 'build', folder, '--logLevel', 'warn'], {
    env: { ...process.env, NODE_ENV: 'production' },
  })
}

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
