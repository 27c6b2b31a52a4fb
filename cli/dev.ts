import { once } from 'node:events'
import { createServer } from 'node:net'
import { resolve } from 'node:path'
import { adminKey } from './dev/admin-key.ts'
import { help, parseOptions, type DevOptions } from './dev/options.ts'
import { quieter } from './dev/server-output.ts'
import { startStackMapper } from './dev/stack-mapper.ts'
import { supervise } from './dev/supervise.ts'
import { watchChanges } from './dev/watch.ts'
import { welcome } from './dev/welcome.ts'
import { buildDashboard } from './lib/dashboard.ts'
import { connect } from './lib/api.ts'
import { CliError, messageOf, tellFailure } from './lib/cli-error.ts'
import { interruption, unlessAborted } from './lib/interruption.ts'
import { startServer, type LocalServer } from './lib/local-server.ts'
import { painter } from './lib/paint.ts'
import { repository } from './lib/wrangler.ts'

async function dev(options: DevOptions, signal: AbortSignal): Promise<void> {
  const state = resolve(repository, options.state)
  await demandFree(options.port)
  await buildDashboard(console.log)
  const changes = watchChanges(repository)
  const mapper = await startStackMapper(repository)
  const starts: Promise<LocalServer>[] = []
  console.log('Starting …')
  const start = async () => {
    signal.throwIfAborted()
    const again = starts.length > 0
    return runServer({ options, state, signal, again, stack_mapper: mapper.url, started: (starting) => starts.push(starting) })
  }
  const tell = (text: string) => console.log(text)
  try {
    await unlessAborted(signal, supervise({ start, changed: changes.next, tell, now: Date.now }))
  } finally {
    changes.close()
    mapper.close()
    // Also stops a server that is still starting when Ctrl-C is pressed.
    for (const server of await Promise.allSettled(starts)) if (server.status === 'fulfilled') await server.value.stop()
  }
}

type Run = {
  options: DevOptions
  state: string
  signal: AbortSignal
  again: boolean
  stack_mapper: string
  started: (starting: Promise<LocalServer>) => void
}

/** Starts the server and prints the welcome text once it is up. */
async function runServer({ options, state, signal, again, stack_mapper, started }: Run): Promise<LocalServer> {
  const { key, own } = adminKey({ repository, state })
  let up = false
  const quiet = quieter((text) => process.stdout.write(text))
  const starting = startServer({
    persist_to: state,
    port: options.port,
    signal,
    vars: { REFLEX_STACK_MAPPER: stack_mapper, ...(own && { REFLEX_ADMIN_KEY: key }) },
    // Until the server is up, its output matters only if it fails; the error then contains it.
    output: (text) => up && quiet(text),
  })
  started(starting)
  const server = await unlessAborted(signal, starting)
  const { model, model_error } = await connect(server.url, key).json<Health>('/health/detailed', { signal })
  if (model_error !== null) {
    // Otherwise the first event would be the first to report it.
    await server.stop()
    throw new CliError(model_error, 'For the local server, set REFLEX_MODEL and what it needs in .dev.vars, one NAME=value a line.')
  }
  const paint = painter(process.stdout)
  if (again) console.log(paint('bold', `Reflex is up again at ${server.url}`))
  else console.log(welcome({ url: server.url, key, own_key: own, state: options.state, model, paint }).join('\n'))
  up = true
  return server
}

type Health = { model: string; model_error: string | null }

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

async function main(args: string[]): Promise<number> {
  const { signal } = interruption()
  try {
    const options = parseOptions(args)
    if (options.help) console.log(help)
    else await dev(options, signal)
    return 0
  } catch (error) {
    if (!signal.aborted) return tellFailure('The dev server could not start:', error)
    console.log('\nThe server has ended.')
    // Ctrl-C is the normal end.
    return 0
  }
}

process.exit(await main(process.argv.slice(2)))
