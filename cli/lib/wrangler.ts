import { execFile } from 'node:child_process'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'

export const repository = resolve(dirname(fileURLToPath(import.meta.url)), '../..')

/** The installed wrangler, run by this very Node: the system's may be too old for it. */
export const wranglerScript = join(repository, 'node_modules/wrangler/bin/wrangler.js')

/** Never a question, never a call home: the same offline. */
export const wranglerEnv = (own: Record<string, string> = {}): NodeJS.ProcessEnv => ({
  ...process.env,
  CI: '1',
  FORCE_COLOR: '0',
  WRANGLER_SEND_METRICS: 'false',
  WRANGLER_HIDE_BANNER: 'true',
  WRANGLER_WRITE_LOGS: 'false',
  // Else it fetches cf.json at each start, and complains at length where it cannot.
  CLOUDFLARE_CF_FETCH_ENABLED: 'false',
  ...own,
})

/** Runs a wrangler command to its end. Rejects with its output. */
export function wrangler(args: readonly string[], env: Record<string, string> = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [wranglerScript, ...args], { cwd: repository, env: wranglerEnv(env) }, (error, stdout, stderr) => {
      const output = stripVTControlCharacters(stdout + stderr)
      if (error) reject(new Error(`wrangler ${args.join(' ')} failed:\n${output}`))
      else resolve(output)
    })
  })
}
