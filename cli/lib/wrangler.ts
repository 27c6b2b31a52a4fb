import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { ProcessGroup } from './process-group.ts'

export const repository = resolve(dirname(fileURLToPath(import.meta.url)), '../..')

/** The installed wrangler, run by this Node: the system's Node may be too old for it. */
export const wranglerScript = join(repository, 'node_modules/wrangler/bin/wrangler.js')

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
  ...own,
})

/** Runs a wrangler command to its end. Rejects with its output. */
export async function wrangler(args: readonly string[], env: Record<string, string> = {}): Promise<string> {
  const group = new ProcessGroup(process.execPath, [wranglerScript, ...args], { cwd: repository, env: wranglerEnv(env) })
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
