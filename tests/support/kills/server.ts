import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import type { Readable } from 'node:stream'
import { convertV4MiniflareOptions, Miniflare } from 'miniflare'
import { unstable_getMiniflareWorkerOptions as optionsOf } from 'wrangler'
import { migrate } from '../../../cli/lib/local-server.ts'
import { packageFolder } from '../../../cli/lib/package.ts'
import { wrangler } from '../../../cli/lib/wrangler.ts'
import { modulesIn } from '../built-modules.ts'

export const ADMIN_KEY = 'crash-admin-key'
/** Miniflare takes this for the runtime: it keeps the configuration, and runs nothing. */
const CATCHES = `#!/bin/sh
cat > "$REFLEX_CAUGHT"
echo '{"event":"listen","socket":"entry","port":1}' >&3
exec sleep 86400
`

/**
 * The Worker in workerd itself, with all state on disk: bundled and configured once, so that a
 * start after SIGKILL takes about a second, which `wrangler dev` cannot.
 */
export class KillableServer {
  readonly #config: string
  readonly #host: Miniflare
  #process: ChildProcess | null = null
  url = ''

  private constructor(config: string, host: Miniflare) {
    this.#config = config
    this.#host = host
  }

  static async prepare(folder: string): Promise<KillableServer> {
    const bundle = path.join(folder, 'bundle')
    await Promise.all([wrangler(['deploy', '--dry-run', '--minify', '--outdir', bundle]), migrate({ persist_to: folder })])
    const [config, catches] = [path.join(folder, 'config.bin'), path.join(folder, 'catches.sh')]
    writeFileSync(catches, CATCHES)
    chmodSync(catches, 0o755)
    Object.assign(process.env, { MINIFLARE_WORKERD_PATH: catches, REFLEX_CAUGHT: config })
    const { assets: _assets, bindings, ...options } = optionsOf(path.join(packageFolder, 'wrangler.toml')).workerOptions
    const host = new Miniflare(
      convertV4MiniflareOptions({
        ...options,
        modules: modulesIn(bundle),
        modulesRoot: bundle,
        cf: false,
        resourcePersistencePath: path.join(folder, 'v3'),
        bindings: { ...(bindings as object), REFLEX_ADMIN_KEY: ADMIN_KEY },
      }),
    )
    await host.ready
    return new KillableServer(config, host)
  }

  async start(): Promise<void> {
    const args = ['serve', '--binary', '--experimental', '--socket-addr=entry=127.0.0.1:0', '--external-addr=loopback=127.0.0.1:1']
    const child = spawn(WORKERD, [...args, '--control-fd=3', this.#config], {
      stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
      env: { ...process.env, TZ: 'UTC' },
    })
    this.#process = child
    this.url = `http://127.0.0.1:${await portOf(child.stdio[3] as Readable)}`
  }

  async kill(): Promise<void> {
    const child = this.#process
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }

  async stop(): Promise<void> {
    await this.kill()
    await this.#host.dispose()
  }
}

const WORKERD = path.join(
  path.dirname(createRequire(createRequire(import.meta.url).resolve('wrangler/package.json')).resolve('workerd/package.json')),
  'bin/workerd',
)

async function portOf(control: Readable): Promise<string> {
  let text = ''
  for await (const part of control) {
    text += String(part)
    const [, port] = /"port":(\d+)/.exec(text) ?? []
    if (port !== undefined) return port
  }
  throw new Error('workerd ended before it listened')
}
