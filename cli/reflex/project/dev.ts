import { once } from 'node:events'
import { createServer } from 'node:net'
import { resolve } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import { adminKey, devVariable, redactionSecret } from '../../dev/admin-key.ts'
import { quieter } from '../../dev/server-output.ts'
import { startStackMapper } from '../../dev/stack-mapper.ts'
import { supervise } from '../../dev/supervise.ts'
import { watchChanges } from '../../dev/watch.ts'
import { notices, welcome } from '../../dev/welcome.ts'
import { connect } from '../../lib/api.ts'
import { CliError, messageOf } from '../../lib/cli-error.ts'
import { buildDashboard } from '../../lib/dashboard.ts'
import { interruption, unlessAborted } from '../../lib/interruption.ts'
import { startServer, type LocalServer } from '../../lib/local-server.ts'
import { painter } from '../../lib/paint.ts'
import type { DoctorHealth } from '../doctor/checks.ts'
import { projectFolder } from './folder.ts'

const NOTES = `
It reloads when a source file changes, and restarts when .dev.vars changes or
when it crashes. It needs no network.

The admin key is REFLEX_ADMIN_KEY in .dev.vars. Without one, a key is generated
and kept in the state's folder. Put other variables and secrets into .dev.vars,
too, one NAME=value a line. Ctrl-C ends the server.

It listens on 127.0.0.1 only. Do not expose it: it is a development server.`

type DevOptions = { port: number; state: string }

export function addDev(program: Command, run = serve): void {
  program
    .command('dev')
    .description('Run the project in this folder on this machine')
    .option('--port <n>', 'where it listens, on 127.0.0.1', portNumber, 8787)
    .option('--state <dir>', 'where its state is kept between runs', '.reflex')
    .addHelpText('after', NOTES)
    .action((options: DevOptions) => run(options))
}

async function serve(options: DevOptions): Promise<void> {
  const { signal } = interruption()
  try {
    await dev(projectFolder(), options, signal)
  } catch (error) {
    if (!signal.aborted) throw error
    // Ctrl-C is the normal end.
    console.log('\nThe server has ended.')
  }
}

function portNumber(text: string): number {
  const port = Number(text)
  if (Number.isInteger(port) && port >= 1 && port <= 65_535) return port
  throw new InvalidArgumentError('It is a number from 1 to 65535.')
}

async function dev(project: string, options: DevOptions, signal: AbortSignal): Promise<void> {
  const state = resolve(project, options.state)
  await demandFree(options.port)
  await buildDashboard(console.log)
  const changes = watchChanges(project)
  const mapper = await startStackMapper(project)
  const starts: Promise<LocalServer>[] = []
  const start = async () => {
    signal.throwIfAborted()
    const again = starts.length > 0
    return runServer({ project, options, state, signal, again, stack_mapper: mapper.url, started: (starting) => starts.push(starting) })
  }
  // A server that ends after Ctrl-C did not crash.
  const tell = (text: string) => void (signal.aborted || console.log(text))
  try {
    await unlessAborted(signal, supervise({ start, changed: changes.next, tell, now: Date.now }))
  } finally {
    changes.close()
    mapper.close()
    // Also stops a server that is still starting when Ctrl-C is pressed.
    for (const server of await Promise.allSettled(starts)) if (server.status === 'fulfilled') await server.value.stop()
  }
}

type DevRun = {
  project: string
  options: DevOptions
  state: string
  signal: AbortSignal
  again: boolean
  stack_mapper: string
  started: (starting: Promise<LocalServer>) => void
}

/** Starts the server and prints the welcome text once it is up. */
async function runServer({ project, options, state, signal, again, stack_mapper, started }: DevRun): Promise<LocalServer> {
  const { value: key, own } = adminKey({ project, state })
  const redaction = redactionSecret({ project, state })
  const rate_limit = devVariable(project, 'REFLEX_RATE_LIMIT')
  let up = false
  const quiet = quieter((text) => process.stdout.write(text))
  const starting = startServer({
    project,
    persist_to: state,
    port: options.port,
    signal,
    ...(!again && { phase: console.log }),
    vars: {
      REFLEX_STACK_MAPPER: stack_mapper,
      ...(own && { REFLEX_ADMIN_KEY: key }),
      ...(redaction.own && { REFLEX_REDACTION_SECRET: redaction.value }),
      ...(rate_limit !== null && { REFLEX_RATE_LIMIT: rate_limit }),
    },
    // Until the server is up, its output matters only if it fails; the error then contains it.
    output: (text) => up && quiet(text),
  })
  started(starting)
  const server = await unlessAborted(signal, starting)
  const { model, model_error, deployment } = await connect(server.url, key).json<Health>('/health/detailed', { signal })
  if (model_error !== null) {
    // Otherwise the first event would be the first to report it.
    await server.stop()
    throw new CliError(model_error, 'For the local server, set REFLEX_MODEL and what it needs in .dev.vars, one NAME=value a line.')
  }
  const paint = painter(process.stdout)
  if (again) console.log(paint('bold', `Reflex is up again at ${server.url}`))
  else console.log(welcome({ project, url: server.url, key, own_key: own, state: options.state, model, paint }).join('\n'))
  for (const line of notices(deployment?.unknown_variables ?? [], paint)) console.log(line)
  up = true
  return server
}

type Health = Pick<DoctorHealth, 'model' | 'model_error' | 'deployment'>

async function demandFree(port: number): Promise<void> {
  const probe = createServer().listen(port, '127.0.0.1')
  try {
    await once(probe, 'listening')
  } catch (error) {
    const taken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'
    const why = taken ? 'something listens there already' : messageOf(error)
    throw new CliError(`Port ${port} cannot be used: ${why}.`, 'Another one: npm run dev -- --port N', error)
  }
  probe.close()
  await once(probe, 'close')
}
