import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { databaseId } from './deploy/database-id.ts'
import { deployedUrl } from './deploy/deployed-url.ts'
import { buildDashboard } from './lib/dashboard.ts'
import { CliError, messageOf, tellFailure } from './lib/cli-error.ts'
import { temporaryFolder } from './lib/temporary-folder.ts'
import { repository, wranglerScript } from './lib/wrangler.ts'

const help = `Usage: npm run deploy -- [--dry-run]

Applies the migrations to the D1 database, then deploys the Worker and the dashboard to your Cloudflare account.

  --dry-run  builds and checks what would be deployed; needs no account and no network
  --help     this`

const ONCE = `Once for each account, from this folder:

  npx wrangler login
  npx wrangler d1 create reflex                     # put the database_id that it prints into wrangler.toml
  npx wrangler queues create reflex-events
  npx wrangler queues create reflex-dead-letters

Then npm run deploy again.`

/** wrangler owns the terminal: it may ask questions and open a browser to log in. */
async function wrangler(args: readonly string[], env: Record<string, string> = {}): Promise<void> {
  const child = spawn(process.execPath, [wranglerScript, ...args], {
    cwd: repository,
    stdio: 'inherit',
    env: { WRANGLER_SEND_METRICS: 'false', ...process.env, ...env },
  })
  const code = await new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve))
  if (code !== 0) throw new CliError(`wrangler ${args.join(' ')} ended with ${code ?? 'a signal'}; what it said stands above.`)
}

async function deploy(): Promise<void> {
  if (databaseId(readFileSync(join(repository, 'wrangler.toml'), 'utf8')) === null) {
    throw new CliError('wrangler.toml has no database_id yet: it still holds the placeholder.', ONCE)
  }
  await buildDashboard(console.log)
  const folder = temporaryFolder('reflex-deploy-')
  const output = join(folder.path, 'output.ndjson')
  try {
    await wrangler(['d1', 'migrations', 'apply', 'DB', '--remote'])
    await wrangler(['deploy'], { WRANGLER_OUTPUT_FILE_PATH: output })
  } catch (error) {
    throw new CliError(messageOf(error), ONCE, error)
  }
  console.log(nextSteps(existsSync(output) ? deployedUrl(readFileSync(output, 'utf8')) : null))
}

const nextSteps = (url: string | null): string => `
Deployed. Everything is closed until there is an admin key; make one, and keep it:

KEY=$(openssl rand -hex 32); echo "$KEY"
printf %s "$KEY" | npx wrangler secret put REFLEX_ADMIN_KEY

Send the first event and wait for its outcome:

curl -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' '${url ?? 'https://YOUR-WORKER.workers.dev'}/v1/scopes/chat%2Fme/events?wait=outcome' \\
  -d '{"type": "ws.message", "connection_id": "me", "content": "hello"}'
`

async function main(args: string[]): Promise<number> {
  try {
    const options = { 'dry-run': { type: 'boolean', default: false }, help: { type: 'boolean', short: 'h', default: false } } as const
    const { values } = parseArgs({ args, options })
    if (values.help) console.log(help)
    else if (values['dry-run']) {
      await buildDashboard(console.log)
      await wrangler(['deploy', '--dry-run'], { WRANGLER_HIDE_BANNER: 'true' })
    } else await deploy()
    return 0
  } catch (error) {
    return tellFailure('Not deployed:', error)
  }
}

process.exit(await main(process.argv.slice(2)))
