import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { CliError } from './cli-error.ts'
import { packageFolder } from './package.ts'
import { ProcessGroup } from './process-group.ts'

/** The project's wrangler, run by this Node: the system's Node may be too old for it. */
export function wranglerScript(project: string): string {
  try {
    return join(dirname(createRequire(join(project, 'package.json')).resolve('wrangler/package.json')), 'bin/wrangler.js')
  } catch (error) {
    throw new CliError(`wrangler is not installed in ${project}.`, 'Install it: npm install --save-dev wrangler', error)
  }
}

/** Says to the build step of wrangler.toml that nothing is left to prepare. */
export const PREPARED = { REFLEX_PREPARED: '1' }

/** wrangler asks nothing and sends no telemetry, online or offline. */
export const wranglerEnv = (own: Record<string, string> = {}): NodeJS.ProcessEnv => ({
  ...process.env,
  CI: '1',
  FORCE_COLOR: '0',
  WRANGLER_SEND_METRICS: 'false',
  WRANGLER_HIDE_BANNER: 'true',
  WRANGLER_WRITE_LOGS: 'false',
  // Otherwise it fetches cf.json at each start, and complains at length offline.
  CLOUDFLARE_CF_FETCH_ENABLED: 'false',
  ...PREPARED,
  ...own,
})

/** Runs a wrangler command in a project to its end. Rejects with its output. */
export async function wrangler(args: readonly string[], env: Record<string, string> = {}, project = packageFolder): Promise<string> {
  const group = new ProcessGroup(process.execPath, [wranglerScript(project), ...args], { cwd: project, env: wranglerEnv(env) })
  let output = ''
  const add = (text: string) => (output += stripVTControlCharacters(text))
  group.child.stdout?.setEncoding('utf8').on('data', add)
  group.child.stderr?.setEncoding('utf8').on('data', add)
  group.child.once('error', (error) => add(`${error.message}\n`))
  const { promise: closed, resolve } = Promise.withResolvers<number | null>()
  // `close` follows the last output; only `error` is emitted if it could not be started.
  group.child.once('close', resolve).once('error', () => resolve(null))
  const code = await closed
  await group.stop()
  if (code !== 0) throw new Error(`wrangler ${args.join(' ')} failed:\n${output}`)
  return output
}
