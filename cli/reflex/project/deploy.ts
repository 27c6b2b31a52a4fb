import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { databaseId, migratedDatabases } from '../../deploy/database-id.ts'
import { deployedUrl } from '../../deploy/deployed-url.ts'
import { CliError, messageOf } from '../../lib/cli-error.ts'
import { buildDashboard } from '../../lib/dashboard.ts'
import { firstEvent } from '../../lib/first-event.ts'
import { temporaryFolder } from '../../lib/temporary-folder.ts'
import { PREPARED, wranglerScript } from '../../lib/wrangler.ts'
import { projectFolder } from './folder.ts'

const ONCE = `Once for each account, from this folder:

  npx wrangler login
  npx wrangler d1 create reflex                     # put the database_id that it prints into wrangler.toml
  npx wrangler queues create reflex-events
  npx wrangler queues create reflex-dead-letters

Then npm run deploy again.`

export function addDeploy(program: Command): void {
  program
    .command('deploy')
    .description("Apply the D1 migrations, then deploy the Worker and the dashboard of this folder's project to your Cloudflare account")
    .option('--dry-run', 'build and check what would be deployed; needs no account and no network')
    .action(async ({ dryRun = false }: { dryRun?: boolean }) => {
      const project = projectFolder()
      await buildDashboard(console.log)
      if (dryRun) await wrangler(project, ['deploy', '--dry-run'], { WRANGLER_HIDE_BANNER: 'true' })
      else await deploy(project)
    })
}

/** wrangler owns the terminal: it may ask questions and open a browser to log in. */
async function wrangler(project: string, args: readonly string[], env: Record<string, string> = {}): Promise<void> {
  const child = spawn(process.execPath, [wranglerScript(project), ...args], {
    cwd: project,
    stdio: 'inherit',
    env: { WRANGLER_SEND_METRICS: 'false', ...process.env, ...PREPARED, ...env },
  })
  const code = await new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve))
  if (code !== 0) throw new CliError(`wrangler ${args.join(' ')} ended with ${code ?? 'a signal'}; what it said stands above.`)
}

async function deploy(project: string): Promise<void> {
  const toml = readFileSync(join(project, 'wrangler.toml'), 'utf8')
  if (databaseId(toml) === null) {
    throw new CliError('wrangler.toml has no database_id yet: it still holds the placeholder.', ONCE)
  }
  const folder = temporaryFolder('reflex-deploy-')
  const output = join(folder.path, 'output.ndjson')
  try {
    for (const name of migratedDatabases(toml)) await wrangler(project, ['d1', 'migrations', 'apply', name, '--remote'])
    await wrangler(project, ['deploy'], { WRANGLER_OUTPUT_FILE_PATH: output })
  } catch (error) {
    throw new CliError(messageOf(error), ONCE, error)
  }
  console.log(nextSteps(project, existsSync(output) ? deployedUrl(readFileSync(output, 'utf8')) : null))
}

const nextSteps = (project: string, url: string | null): string => `
Deployed. Everything is closed until there is an admin key; make one, and keep it:

KEY=$(openssl rand -hex 32); echo "$KEY"
printf %s "$KEY" | npx wrangler secret put REFLEX_ADMIN_KEY

Send the first event and wait for its outcome:

${firstEvent(project, url ?? 'https://YOUR-WORKER.workers.dev').join('\n')}
`
