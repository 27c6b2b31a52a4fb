import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { migratedDatabases } from '../deploy/database-id.ts'
import { freePort } from './free-port.ts'
import { packageFolder } from './package.ts'
import { ProcessGroup } from './process-group.ts'
import { wrangler, wranglerEnv, wranglerScript } from './wrangler.ts'

export type ServerOptions = {
  /**
   * Folder of all state. A server started on it again continues where the last one ended or was
   * killed.
   */
  persist_to: string
  /** The folder's D1 has all migrations, by `migrate`: applying them takes seconds. */
  migrated?: boolean
  /** The Worker's variables and secrets, such as `REFLEX_ADMIN_KEY`; they override `.dev.vars`. */
  vars?: Record<string, string>
  /** A free port by default. Starting fails if it is taken. */
  port?: number
  /** The folder whose Worker is run; this package's own by default. */
  project?: string
  /** A wrangler.toml, relative to the project. */
  config?: string
  /** Statements that D1 runs after its migrations. */
  sql?: string
  /** The Worker's module, instead of the one that the configuration names. */
  script?: string
  /** Environment of the wrangler process itself. */
  env?: Record<string, string>
  /** Port for a profiler; a free one by default. */
  inspector_port?: number
  /** Receives the output of wrangler and the Worker. */
  output?: (text: string) => void
  ready_ms?: number
  /** Hears what the start does next. */
  phase?: (doing: string) => void
  /** After an abort nothing more is started. */
  signal?: AbortSignal
}

export type LocalServer = {
  url: string
  port: number
  /** The last megabyte of output of wrangler and the Worker, without colours. */
  log: () => string
  /** Resolves when wrangler has ended for any reason. */
  ended: Promise<void>
  /** Stops the server and everything that it started. */
  stop: () => Promise<void>
  /**
   * Kills wrangler and workerd at once, as a power cut would. Resolves when no process of it runs.
   */
  kill9: () => Promise<void>
}

const MOST_LOG = 1_000_000

/**
 * A local queue forgets its messages when its process dies: D1 has a note of each. A local rate
 * limiter writes a row for each request, a tenth of what a lone event costs.
 */
const LOCAL = { REFLEX_QUEUE_NOTES: 'on', REFLEX_RATE_LIMIT: 'off' }

type Place = Pick<ServerOptions, 'persist_to' | 'project' | 'config' | 'env'>
const placeOptions = ({ persist_to, project = packageFolder, config = 'wrangler.toml' }: Place): string[] => [
  '--config',
  resolve(project, config),
  '--persist-to',
  resolve(persist_to),
]

/** Builds this package's Worker into a folder, as a deployment would. */
export const bundle = (folder: string): Promise<unknown> => wrangler(['deploy', '--dry-run', '--outdir', folder])

/** Applies the migrations to each D1 in a folder of state. A copy of it serves other servers. */
export async function migrate({ env = {}, project = packageFolder, ...place }: Place): Promise<void> {
  const [, config = ''] = placeOptions({ project, ...place })
  for (const name of migratedDatabases(readFileSync(config, 'utf8')))
    await wrangler(['d1', 'migrations', 'apply', name, '--local', ...placeOptions({ project, ...place })], env, project)
}

async function layD1({ migrated, sql, env = {}, project = packageFolder, phase, ...place }: ServerOptions): Promise<void> {
  phase?.('Migrating: the tables of the local D1 …')
  if (migrated !== true) await migrate({ ...place, env, project })
  if (sql === undefined) return
  await wrangler(['d1', 'execute', 'DB', '--local', '--yes', '--command', sql, ...placeOptions({ project, ...place })], env, project)
}

/**
 * Runs a Worker as `wrangler dev` does, with D1 migrations applied, and resolves when it answers
 * `/health`. Rejects with wrangler's output if it does not start. Needs no network, asks nothing,
 * and leaves no process behind.
 */
export async function startServer({
  persist_to,
  project = packageFolder,
  vars = {},
  config = 'wrangler.toml',
  script,
  env = {},
  ...options
}: ServerOptions): Promise<LocalServer> {
  const place = { persist_to, project, config, env }
  // First: two processes that open the same D1 find it locked.
  await layD1({ ...place, ...options })
  options.signal?.throwIfAborted()
  options.phase?.('Bundling: the Worker is built and started …')
  const where = placeOptions(place)
  const port = options.port ?? (await freePort())
  const bound = Object.entries({ ...LOCAL, ...vars }).flatMap(([name, value]) => ['--var', `${name}:${value}`])
  const own = [
    '--ip',
    '127.0.0.1',
    '--port',
    String(port),
    '--inspector-port',
    String(options.inspector_port ?? 0),
    '--show-interactive-dev-session=false',
  ]
  const group = new ProcessGroup(process.execPath, [...programOf({ project, config, script }), ...where, ...own, ...bound], {
    cwd: project,
    env: wranglerEnv(env),
  })
  const log = collect(group, options.output)
  const ended = new Promise<void>((resolve) => {
    group.child.once('exit', () => resolve()).once('error', () => resolve())
  })
  const url = `http://127.0.0.1:${port}`
  try {
    await ready(url, { log, ended, ready_ms: options.ready_ms ?? 60_000 }).catch((error: unknown) => {
      const why = error instanceof Error ? error.message : String(error)
      throw new Error(`wrangler dev did not come up: ${why}\n${log()}${causeIn(log())}`, { cause: error })
    })
  } catch (error) {
    await group.kill()
    throw error
  }
  return { url, port, log, ended, stop: () => group.stop(), kill9: () => group.kill() }
}

/**
 * The error that the Worker threw while it started, as the last line of the output: wrangler writes
 * a page of warnings after it, and blames the program of the runtime.
 */
export function causeIn(log: string): string {
  const [, thrown] = /^(?!\s*\{).*?\bUncaught (?:Error: )?(.+)$/m.exec(log) ?? []
  return thrown === undefined ? '' : `\nThe Worker threw while it started: ${thrown}`
}

/** Names bound classes that the Worker does not export: wrangler says so, and waits for ever. */
export function missingClasses(log: string): string | null {
  const [, names] = /following Durable Objects, which are not exported in your entrypoint file: (.+?)\.?\s*$/m.exec(log) ?? []
  return names === undefined ? null : `a class_name in wrangler.toml is none of the classes that the entry file exports: ${names}`
}

/**
 * The program that serves a Worker: `wrangler dev`. Tests build this package's Worker once, and
 * `REFLEX_SERVER` names their program, which takes the same options: it starts with a third of the
 * work.
 */
function programOf({ project, config, script }: { project: string; config: string; script: string | undefined }): string[] {
  const server = process.env['REFLEX_SERVER']
  const is_own = script === undefined && project === packageFolder && config === 'wrangler.toml'
  if (server !== undefined && is_own) return [server]
  return [wranglerScript(project), 'dev', ...(script === undefined ? [] : [resolve(project, script)])]
}

function collect({ child }: ProcessGroup, output?: (text: string) => void): () => string {
  let log = ''
  const add = (text: string) => {
    output?.(text)
    log = (log + stripVTControlCharacters(text)).slice(-MOST_LOG)
  }
  child.stdout?.setEncoding('utf8').on('data', add)
  child.stderr?.setEncoding('utf8').on('data', add)
  child.once('error', (error) => add(`${error.message}\n`))
  return () => log
}

/** Waits for `Ready on` first: another process on that port might answer `/health`. */
async function ready(url: string, { log, ended, ready_ms }: { log: () => string; ended: Promise<void>; ready_ms: number }): Promise<void> {
  const until = performance.now() + ready_ms
  let running = true
  void ended.then(() => (running = false))
  for (;;) {
    if (!running) throw new Error('it ended')
    const missing = missingClasses(log())
    if (missing !== null) throw new Error(missing)
    if (performance.now() > until) throw new Error(`it was not ready after ${ready_ms} ms`)
    if (log().includes(`Ready on ${url}`) && (await healthy(url))) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

async function healthy(url: string): Promise<boolean> {
  const response = await fetch(`${url}/health`, { signal: AbortSignal.timeout(5000) }).catch(() => null)
  // To the end: a body that is cancelled shows as a broken pipe in the server's output.
  await response?.text().catch(() => {})
  return response?.ok ?? false
}
