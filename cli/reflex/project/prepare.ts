import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { buildDashboard } from '../../lib/dashboard.ts'
import { migratedDatabases } from '../../deploy/database-id.ts'
import { wrangler } from '../../lib/wrangler.ts'
import { devVariable } from '../../dev/admin-key.ts'
import { projectFolder } from './folder.ts'

const NO_KEY = `REFLEX_ADMIN_KEY is not set, so every route but /health refuses. Put a line
REFLEX_ADMIN_KEY=… into .dev.vars and start again, or use npm run dev, which makes a key.`

/**
 * The build step of wrangler.toml, for those who start wrangler themselves: without it a fresh
 * clone has no page, and its local D1 no tables.
 */
export function addPrepare(program: Command): void {
  program
    .command('prepare', { hidden: true })
    .description('What wrangler.toml runs before wrangler builds: the page, and the tables of the local D1')
    .action(async () => {
      if (process.env['REFLEX_PREPARED']) return
      await buildDashboard(console.log)
      if (process.env['WRANGLER_COMMAND'] === 'dev') await prepareLocal(projectFolder())
    })
}

/** wrangler runs its build step again at each change: what is done is passed over. */
async function prepareLocal(project: string): Promise<void> {
  if (devVariable(project, 'REFLEX_ADMIN_KEY') === null) console.log(NO_KEY)
  const state = join(project, '.wrangler/state')
  const mark = join(state, 'migrated')
  const toml = readFileSync(join(project, 'wrangler.toml'), 'utf8')
  const migrations = migrationsOf(project, toml)
  if (existsSync(mark) && readFileSync(mark, 'utf8') === migrations) return
  console.log('Laying the tables of the local D1 …')
  for (const name of migratedDatabases(toml)) await wrangler(['d1', 'migrations', 'apply', name, '--local'], {}, project)
  mkdirSync(state, { recursive: true })
  writeFileSync(mark, migrations)
}

/** The names of the databases and of their migrations, a line each. */
function migrationsOf(project: string, toml: string): string {
  const [, folder = 'migrations'] = /^migrations_dir *= *"(.+)"/m.exec(toml) ?? []
  const names = readdirSync(join(project, folder)).filter((name) => name.endsWith('.sql'))
  return `${[...migratedDatabases(toml), ...names.sort()].join('\n')}\n`
}
