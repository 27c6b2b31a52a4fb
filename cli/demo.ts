import { randomBytes, randomUUID } from 'node:crypto'
import { CliError, messageOf, tellFailure } from './lib/cli-error.ts'
import { interruption, unlessAborted, type Interruption } from './lib/interruption.ts'
import { buildDashboard } from './lib/dashboard.ts'
import { startServer, type LocalServer } from './lib/local-server.ts'
import { listen } from './lib/listen.ts'
import { painter, type Output } from './lib/paint.ts'
import { temporaryFolder } from './lib/temporary-folder.ts'
import { count } from './lib/text.ts'
import { teach, type Taught } from './learning/lesson.ts'
import { LiveLine } from './learning/live-line.ts'
import { curveLines, figuresOf } from './learning/report.ts'
import { connect } from './lib/api.ts'
import { FAILING_SCOPE } from './demo/failing-scope.ts'
import { howToTalk } from './demo/keep.ts'
import { learningLesson } from './demo/learning.ts'
import { help, parseOptions, type DemoOptions } from './demo/options.ts'
import { presenterFor } from './demo/presenter.ts'
import { type AuthLog, readAuthLog } from './demo/read-log.ts'
import { report } from './demo/report.ts'
import { runDemo } from './demo/run-demo.ts'
import { initialState } from './demo/state.ts'
import type { Summary } from './demo/summary.ts'

const interrupted = interruption()

async function main(args: string[]): Promise<number> {
  let json = args.includes('--json')
  try {
    const options = parseOptions(args)
    json = options.json
    if (options.help) console.log(help)
    else await demo(options, interrupted)
    if (interrupted.signal.aborted) process.stderr.write('The server has ended, and its state is removed.\n')
    return 0
  } catch (error) {
    return failed(error, json)
  }
}

async function demo(options: DemoOptions, { signal }: Interruption): Promise<void> {
  const started = performance.now()
  const output: Output = options.json ? process.stderr : process.stdout
  const log = await unlessAborted(signal, readAuthLog(options, Date.now()))
  const state = initialState({
    total: log.events.length,
    scopes: log.scopes,
    failing: FAILING_SCOPE,
    attempts: log.attempts,
  })
  const presenter = presenterFor(output, { file: log.name, state, started })
  if (options.keep) await buildDashboard((text) => output.write(`${text}\n`))
  const folder = temporaryFolder('reflex-demo-')
  const key = `demo-${randomUUID().replaceAll('-', '')}`
  const starting = startServer({ persist_to: folder.path, vars: variables(key), signal })
  try {
    const server = await unlessAborted(signal, starting)
    const summary = await unlessAborted(signal, runDemo({ server, key, log, state, options, presenter, signal, started }))
    presenter.close()
    const taught = options.learning ? await unlessAborted(signal, teachDemo({ server, key, log, output, signal, started })) : null
    show({ summary, taught }, options, output)
    if (options.keep) await keepUp({ server, key, scope: log.scopes[0] ?? '', approvals: summary.approvals, output, signal })
  } finally {
    presenter.close()
    // Also stops a server that is still starting when Ctrl-C is pressed.
    const server = await starting.catch(() => null)
    await server?.stop()
    folder.remove()
  }
}

/**
 * These override .dev.vars: the demo calls no model and notifies no firewall, ticket system or
 * person. As in any deployment, redacted values are hashed with a secret of its own.
 */
const variables = (key: string) => ({
  REFLEX_ADMIN_KEY: key,
  REFLEX_REDACTION_SECRET: randomBytes(32).toString('hex'),
  REFLEX_MODEL: 'offline',
  BLOCK_WEBHOOK_URL: '',
  TICKET_WEBHOOK_URL: '',
  NOTIFY_WEBHOOK_URL: '',
})

type Teaching = { server: LocalServer; key: string; log: AuthLog; output: Output; signal: AbortSignal; started: number }

/** Sends the log to a scope that learns. The firewall that its agent calls is on this machine. */
async function teachDemo({ server, key, log, output, signal, started }: Teaching): Promise<Taught> {
  const firewall = await listen(() => ({ status: 200, body: { blocked: true } }))
  const line = new LiveLine(output, started)
  try {
    return await teach(connect(server.url, key), learningLesson(log, { host: firewall.host, url: `http://${firewall.host}` }), {
      signal,
      onProgress: ({ sent, of, doing }) =>
        line.show(`a scope without a reflex: ${count(sent)} of ${count(of)} lines${doing === 'learning' ? '; it learns' : ''}`),
    })
  } finally {
    line.close()
    firewall.stop()
  }
}

type Shown = { summary: Summary; taught: Taught | null }

function show({ summary, taught }: Shown, { json, keep }: DemoOptions, output: Output): void {
  if (json) return void process.stdout.write(`${JSON.stringify({ ...summary, learning: taught && figuresOf(taught) })}\n`)
  const columns = output.isTTY ? (output.columns ?? 80) : Number.POSITIVE_INFINITY
  const paint = painter(output)
  const curve =
    taught && curveLines(taught, 'Model calls per 100 lines, for a scope that learns', { columns: Math.min(columns, 100), paint })
  output.write(`${report(summary, { columns, paint, kept: keep, curve }).join('\n')}\n`)
}

type Kept = { server: LocalServer; key: string; scope: string; approvals: Summary['approvals']; output: Output; signal: AbortSignal }

async function keepUp({ server, key, scope, approvals, output, signal }: Kept): Promise<void> {
  output.write(`\n${howToTalk({ url: server.url, key, scope, approvals }).join('\n')}\n`)
  const stopped = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
  await Promise.race([stopped, server.ended])
  if (!signal.aborted) throw new CliError('The server ended by itself.', 'Start it again with npm run demo -- --keep, or npm run dev.')
}

function failed(error: unknown, json: boolean): number {
  const { signal, name, exitCode } = interrupted
  const paint = painter(process.stderr)
  if (signal.aborted) {
    const by = name() === 'SIGINT' ? 'Ctrl-C' : name()
    process.stderr.write(`${paint('yellow', `Stopped by ${by}.`)} The server has ended too; nothing is left behind.\n`)
    return exitCode()
  }
  const hint = error instanceof CliError ? error.hint : 'If node_modules is incomplete, npm ci sets it right.'
  if (json) process.stdout.write(`${JSON.stringify({ ok: false, error: messageOf(error), hint })}\n`)
  return tellFailure('The demo failed:', error instanceof CliError ? error : new CliError(messageOf(error), hint, error))
}

// A reader that closes the pipe early, such as `head`, is not a failure.
process.stdout.on('error', () => process.exit(141))
process.stderr.on('error', () => process.exit(141))
process.exitCode = await main(process.argv.slice(2))
// Connections to a killed server may keep a handle open for a while.
process.exit()
