import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { migrate, startServer, type LocalServer, type ServerOptions } from '../cli/lib/local-server.ts'
import { bareClient, reflexClient, sandboxClient, type SandboxClient } from './clients.ts'
import { costTable, measureCost, type CostLine } from './cost/measure.ts'
import { writeCosts, writeFigures, writeScale } from './cost/page.ts'
import { figureTable, measureFigure, type Figure, type Line } from './figure.ts'
import { directPath, reflexDirect, singleEvents } from './figures/direct.ts'
import { exported } from './figures/export.ts'
import { fullInbox } from './figures/inbox.ts'
import { queueGrouped, queueLone, queueLoneNew, queuePath, queueRate } from './figures/queue.ts'
import { ledgerBatches, ledgerSingle } from './figures/ledger.ts'
import { oneUrl } from './figures/one-url.ts'
import { overviewPaint } from './figures/overview.ts'
import { replayOfTurn } from './figures/replay.ts'
import { sandboxFigures } from './figures/sandbox.ts'
import { miningFigure, skillTests } from './figures/skills.ts'
import { socket, socketReflex, socketReply, socketTurn } from './figures/socket.ts'
import { statisticsOfMillion } from './figures/statistics.ts'
import { longTrace } from './figures/trace.ts'
import { turnOverhead, turnWithSkills } from './figures/turn.ts'
import { whatIf } from './figures/what-if.ts'
import { peerTable, runPeers, type PeerLine } from './peers.ts'
import { scales, scaleTable } from './scale/index.ts'
import type { Open, ScaleLine } from './scale/place.ts'

const figures: Figure[] = [
  socket,
  socketTurn,
  socketReply,
  socketReflex,
  singleEvents,
  queuePath,
  queueGrouped,
  queueRate,
  queueLone,
  queueLoneNew,
  exported,
  directPath,
  reflexDirect,
  turnOverhead,
  turnWithSkills,
  oneUrl,
  replayOfTurn,
  whatIf,
  ...sandboxFigures,
  fullInbox,
  longTrace,
  statisticsOfMillion,
  overviewPaint,
  miningFigure,
  skillTests,
  ledgerBatches,
  ledgerSingle,
]
const COST = 'cost'
const KEY = 'bench-admin-key'
/** wrangler dev traces each storage call, which takes half of the time of all sides. */
const UNTRACED = { X_LOCAL_OBSERVABILITY: 'false' }

const usage = `npm run bench -- [--only NAME]… [--floors] [--quick] [--json] [--strict] [--write] [--before CHECKOUT] [--peers DIR [--peer "NAME ARGUMENT"]…]
       [--scopes NUMBER] [--events NUMBER]

Prints each figure beside a bare Worker, both under wrangler dev without tracing, measured in turns; then what an event writes.
  --only NAME          ${[...figures.map(({ name }) => name), COST].join(', ')}
  --only NAME          ${Object.keys(scales).join(', ')}: minutes to hours each, measured only where they are named
  --scopes, --events   another size of these
  --floors             the figures with a worst ratio that CI accepts
  --quick              fewer runs, and fewer events in each
  --json               the samples, too
  --strict             exits with 1 where a target is missed
  --write              writes what was measured into the tables of docs/cost.md
  --before CHECKOUT    measures the Reflex of another checkout in the same run
  --peers DIR          runs DIR/NAME/run.sh, which prints a line of JSON, one peer after the other`

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [] },
    floors: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    strict: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    before: { type: 'string' },
    peers: { type: 'string' },
    peer: { type: 'string', multiple: true, default: [] },
    scopes: { type: 'string' },
    events: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
type Results = { figures: Line[]; cost: CostLine[]; peers: PeerLine[]; scale: ScaleLine[] }

/** Less would measure starts. A quick run shows that all figures can be measured. */
const count = (full: number): number => (options.quick ? full * 0.1 : full)
const wanted = (name: string, has_floor: boolean): boolean =>
  (options.only.length === 0 || options.only.includes(name)) && (has_floor || !options.floors)
const chosen = figures.filter(({ name, worst }) => wanted(name, worst !== undefined))
const counts_cost = wanted(COST, false)
const large = Object.entries(scales).filter(([name]) => options.only.includes(name))
const sizeOf = (text: string | undefined): number | undefined => (text === undefined ? undefined : Number(text))
const sizes = { scopes: sizeOf(options.scopes), events: sizeOf(options.events) }
if (options.help || (chosen.length === 0 && !counts_cost && large.length === 0 && options.peers === undefined)) {
  console.log(usage)
} else {
  const results = await run()
  console.log(options.json ? JSON.stringify(results, null, 2) : tables(results))
  if (options.write && results.cost.length > 0) await writeCosts(results.cost)
  if (options.write) await writeFigures(results.figures, results.peers)
  if (options.strict && [...results.figures, ...results.cost, ...results.scale].some(({ ok }) => ok === false)) process.exitCode = 1
}

async function run(): Promise<Results> {
  const directory = await mkdtemp(join(tmpdir(), 'reflex-bench-'))
  const servers: LocalServer[] = []
  const template = join(directory, 'migrated')
  await migrate({ persist_to: template, env: UNTRACED })
  const start = async (name: string, more: Partial<ServerOptions>): Promise<string> => {
    const persist_to = join(directory, `${name}-${servers.length}-${randomUUID()}`)
    // Other configurations have migrations of their own.
    const migrated = more.config === undefined
    if (migrated) await cp(template, persist_to, { recursive: true })
    const server = await startServer({ persist_to, migrated, env: UNTRACED, ...more })
    servers.push(server)
    return server.url
  }
  const open: Open = async (name, more = {}) => {
    const folder = join(directory, name)
    // Other configurations have migrations of their own.
    const migrated = more.config === undefined
    if (migrated && !existsSync(folder)) await cp(template, folder, { recursive: true })
    const vars = { REFLEX_ADMIN_KEY: KEY, ...more.vars }
    const server = await startServer({ persist_to: folder, migrated, env: UNTRACED, ready_ms: 300_000, ...more, vars })
    servers.push(server)
    return { reflex: reflexClient(server.url, KEY), folder, stop: server.stop }
  }
  const stop = async () => {
    for (const server of servers.splice(0)) await server.stop()
  }
  /**
   * Repeats work that failed, once and with new servers: under load, wrangler's proxy can reuse a
   * connection that workerd is closing, and ends (cloudflare/workers-sdk#15452).
   */
  const repeated = async <Result>(what: string, work: () => Promise<Result>): Promise<Result> => {
    try {
      return await work()
    } catch (error) {
      for (const server of servers) console.error(`\n--- ${server.url}, the end of its log:\n${server.log().slice(-2000)}`)
      console.error(`\n${what} failed and is repeated:`, error)
      await stop()
      return work()
    }
  }
  try {
    const lines = await measureFigures({ start, repeated, running: () => servers.length > 0 })
    await stop()
    const cost = counts_cost ? await repeated(COST, () => measureCost(start, { key: KEY, count, progress })) : []
    await stop()
    const scale: ScaleLine[] = []
    for (const [name, measure] of large) {
      const found = await measure({ ...sizes, open, progress: (text) => progress(`${name}: ${text}`) })
      scale.push(...found)
      if (options.write) await writeScale(name, found)
    }
    return { figures: lines, cost, scale, peers: options.peers === undefined ? [] : await runPeers(options.peers, options.peer, progress) }
  } finally {
    progress('')
    await stop()
    await rm(directory, { recursive: true, force: true })
  }
}

type Start = (name: string, more: Partial<ServerOptions>) => Promise<string>
type Repeated = <Result>(what: string, work: () => Promise<Result>) => Promise<Result>

async function measureFigures({ start, repeated, running }: { start: Start; repeated: Repeated; running: () => boolean }): Promise<Line[]> {
  let sides: Awaited<ReturnType<typeof startSides>> | undefined
  const lines: Line[] = []
  for (const figure of chosen) {
    lines.push(
      await repeated(figure.name, async () => {
        if (!sides || !running()) sides = await startSides(start)
        const { before, ...bench } = sides
        const shown = (text: string) => progress(`${figure.name}: ${text}`)
        return measureFigure(figure, { before, bench: { ...bench, count, progress: shown }, runs: options.quick ? 1 : 5 })
      }),
    )
  }
  return lines
}

async function startSides(start: Start) {
  progress('starting the servers')
  // All runs of the Ledger's figures are by one key, which adds more than it may in a day.
  const vars = { REFLEX_ADMIN_KEY: KEY, REFLEX_LEDGER_MB_PER_DAY: '1000' }
  const reflex = reflexClient(await start('reflex', { vars }), KEY)
  const other = options.before === undefined ? null : resolve(options.before, 'wrangler.toml')
  const before = other ? reflexClient(await start('before', { vars, config: other }), KEY) : null
  const bare = bareClient(await start('bare', { config: 'bench/bare/wrangler.toml' }))
  let client: Promise<SandboxClient> | undefined
  const sandbox = () => (client ??= start('sandbox', { config: 'bench/sandbox/wrangler.toml' }).then(sandboxClient))
  const another = async (more: Record<string, string>, sql?: string) =>
    reflexClient(await start('another', { vars: { ...vars, ...more }, ...(sql !== undefined && { sql }) }), KEY)
  return { reflex, before, bare, sandbox, another }
}

function tables({ figures: lines, cost, peers, scale }: Results): string {
  return [
    lines.length > 0 ? figureTable(lines) : '',
    cost.length > 0 ? costTable(cost) : '',
    scale.length > 0 ? scaleTable(scale) : '',
    peers.length > 0 ? peerTable(peers) : '',
  ]
    .filter((table) => table !== '')
    .map((table) => `\n${table}`)
    .join('\n')
}

/** On a terminal only, so that a program that reads the output gets nothing but the result. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001B[K${text}`)
}
