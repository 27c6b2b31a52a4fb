import { once } from 'node:events'
import { createServer } from 'node:net'
import { resolve } from 'node:path'
import { adminKey } from './dev/admin-key.ts'
import { help, parseOptions, type DevOptions } from './dev/options.ts'
import { quieter } from './dev/server-output.ts'
import { welcome } from './dev/welcome.ts'
import { connect } from './lib/api.ts'
import { CliError, messageOf, tellFailure } from './lib/cli-error.ts'
import { interruption, unlessAborted } from './lib/interruption.ts'
import { startServer } from './lib/local-server.ts'
import { painter } from './lib/paint.ts'
import { repository } from './lib/wrangler.ts'

async function dev(options: DevOptions, signal: AbortSignal): Promise<void> {
  const { port } = options
  const state = resolve(repository, options.state)
  await demandFree(port)
  const { key, own } = adminKey({ repository, state })
  let up = false
  const quiet = quieter((text) => process.stdout.write(text))
  console.log('Starting …')
  const starting = startServer({
    persist_to: state,
    port,
    signal,
    vars: own ? { REFLEX_ADMIN_KEY: key } : {},
    // Until it is up, its words matter only if it does not come up; the error has them then.
    output: (text) => up && quiet(text),
  })
  try {
    const server = await unlessAborted(signal, starting)
    const { model } = await connect(server.url, key).json<{ model: string }>('/health/detailed', { signal })
    console.log(welcome({ url: server.url, key, own_key: own, state: options.state, model, paint: painter(process.stdout) }).join('\n'))
    up = true
    await unlessAborted(signal, server.ended)
    if (!signal.aborted) throw new CliError('The server ended by itself; its last words stand above.')
  } finally {
    const server = await starting.catch(() => null)
    await server?.stop()
  }
}

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
    if (!signal.aborted) return tellFailure('The server could not run:', error)
    console.log('\nThe server has ended.')
    // Ctrl-C is how it is meant to end.
    return 0
  }
}

process.exit(await main(process.argv.slice(2)))
