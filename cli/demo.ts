import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { learningLesson } from './demo/learning.ts'
import { help, parseOptions, type DemoOptions } from './demo/options.ts'
import { type AuthLog, readAuthLog } from './demo/read-log.ts'
import { howToTalk, report } from './demo/report.ts'
import { runDemo } from './demo/run.ts'
import type { DemoSummary } from './demo/summary.ts'
import { type Progress, teach, type Taught } from './learning/lesson.ts'
import { LiveLine } from './learning/live-line.ts'
import { curveLines, figuresOf } from './learning/report.ts'
import { type Api, connect } from './lib/api.ts'
import { CliError, messageOf, tellFailure } from './lib/cli-error.ts'
import { buildDashboard } from './lib/dashboard.ts'
import { interruption, unlessAborted, type Interruption } from './lib/interruption.ts'
import { listen } from './lib/listen.ts'
import { startServer, type LocalServer } from './lib/local-server.ts'
import { painter, type Terminal } from './lib/paint.ts'
import { temporaryFolder } from './lib/temporary-folder.ts'
import { count } from './lib/text.ts'

const NOTICE_MS = 500
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
  const output: Terminal = options.json ? process.stderr : process.stdout
  const log = await unlessAborted(signal, readAuthLog(options, Date.now()))
  const line = new LiveLine(output, started)
  line.show('starting the real Worker on this machine; no network, state in a temporary folder')
  if (options.keep) await buildDashboard((text) => line.show(text))
  const folder = temporaryFolder('reflex-demo-')
  const key = `demo-${randomUUID().replaceAll('-', '')}`
  const starting = startServer({ persist_to: folder.path, vars: variables(key), signal, phase: (doing) => line.show(doing) })
  try {
    const server = await unlessAborted(signal, starting)
    const say = (text: string) => line.show(text)
    const served = <Value>(work: Promise<Value>) => unlessAborted(signal, whileUp(server, work))
    const summary = await served(runDemo({ server, key, log, ...options, say, signal, started }))
    const taught = options.learning ? await served(teachDemo(connect(server.url, key), { log, say, signal })) : null
    line.close()
    show({ summary, taught }, options, output)
    if (!options.keep) return
    output.write(`\n${howToTalk({ url: server.url, key, approvals: summary.approvals }).join('\n')}\n`)
    const stopped = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    await whileUp(server, stopped)
  } finally {
    line.close()
    // Also stops a server that is still starting when Ctrl-C is pressed.
    const server = await starting.catch(() => null)
    await server?.stop()
    folder.remove()
  }
}

/** Often a request notices first that the server is gone; the error to report is the cause. */
function whileUp<Value>(server: LocalServer, work: Promise<Value>): Promise<Value> {
  const ended = server.ended.then(() => {
    if (interrupted.signal.aborted) return work
    const last = server.log().trim().split('\n').slice(-15).join('\n')
    throw new CliError(`The server ended by itself. Its last words:\n${last}`, 'Try again; npm run dev shows all that a server says.')
  })
  const settled = work.catch((error: unknown) => wait(NOTICE_MS).then(() => Promise.reject(error)))
  return Promise.race([ended, settled])
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

type Teaching = { log: AuthLog; say: (text: string) => void; signal: AbortSignal }

/** Sends the log to a scope that learns. The firewall that its agent calls is on this machine. */
async function teachDemo(api: Api, { log, say, signal }: Teaching): Promise<Taught> {
  const firewall = await listen(() => ({ status: 200, body: { blocked: true } }))
  const onProgress = ({ sent, of, doing }: Progress) =>
    say(`a scope without a reflex: ${count(sent)} of ${count(of)} lines${doing === 'learning' ? '; it learns' : ''}`)
  try {
    return await teach(api, learningLesson(log, { host: firewall.host, url: `http://${firewall.host}` }), { signal, onProgress })
  } finally {
    firewall.stop()
  }
}

type Shown = { summary: DemoSummary; taught: Taught | null }

function show({ summary, taught }: Shown, { json, keep }: DemoOptions, output: Terminal): void {
  if (json) return void process.stdout.write(`${JSON.stringify({ ...summary, learning: taught && figuresOf(taught) })}\n`)
  const columns = output.isTTY ? (output.columns ?? 80) : Number.POSITIVE_INFINITY
  const paint = painter(output)
  const title = 'Model calls per 100 lines, for a scope that learns'
  const curve = taught ? curveLines(taught, title, { columns: Math.min(columns, 100), paint }) : []
  output.write(`${report(summary, { columns, paint, kept: keep, curve }).join('\n')}\n`)
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
