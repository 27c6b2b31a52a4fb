import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { startServer, type LocalServer, type ServerOptions } from '../cli/lib/local-server.ts'
import { bareClient, reflexClient, sandboxClient, type SandboxClient } from './clients.ts'
import { costTable, measureCost, type CostLine } from './cost/measure.ts'
import { figureTable, measureFigure, type Figure, type Line } from './figure.ts'
import { directPath, reflexDirect, singleEvents } from './figures/direct.ts'
import { fullInbox } from './figures/inbox.ts'
import { queueGrouped, queuePath, queueRate } from './figures/queue.ts'
import { sandboxFigures } from './figures/sandbox.ts'
import { socket, socketReflex, socketReply, socketTurn } from './figures/socket.ts'
import { turnOverhead, turnWithSkills } from './figures/turn.ts'
import { peerTable, runPeers, type PeerLine } from './peers.ts'

const figures: Figure[] = [
  socket,
  socketTurn,
  socketReply,
  socketReflex,
  singleEvents,
  queuePath,
  queueGrouped,
  queueRate,
  directPath,
  reflexDirect,
  turnOverhead,
  turnWithSkills,
  ...sandboxFigures,
  fullInbox,
]
const COST = 'cost'
const KEY = 'bench-admin-key'
/** wrangler dev traces each storage call, which takes half of the time of all sides. */
const UNTRACED = { X_LOCAL_OBSERVABILITY: 'false' }

const usage = `npm run bench -- [--only NAME]… [--quick] [--json] [--strict] [--before CHECKOUT] [--peers DIR [--peer "NAME ARGUMENT"]…]

Prints each figure beside a bare Worker, both under wrangler dev without tracing, measured in turns; then what an event writes.
  --only NAME          ${[...figures.map(({ name }) => name), COST].join(', ')}
  --quick              fewer runs, and fewer events in each
  --json               the samples, too
  --strict             exits with 1 where a target is missed
  --before CHECKOUT    measures the Reflex of another checkout in the same run
  --peers DIR          runs DIR/NAME/run.sh, which prints a line of JSON, one peer after the other`

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [] },
    quick: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    strict: { type: 'boolean', default: false },
    before: { type: 'string' },
    peers: { type: 'string' },
    peer: { type: 'string', multiple: true, default: [] },
    help: { type: 'boolean', default: false },
  },
})
type Results = { figures: Line[]; cost: CostLine[]; peers: PeerLine[] }

const count = (full: number): number => (options.quick ? full * 0.4 : full)
const wanted = (name: string): boolean => options.only.length === 0 || options.only.includes(name)
const chosen = figures.filter(({ name }) => wanted(name))
if (options.help || (chosen.length === 0 && !wanted(COST) && options.peers === undefined)) {
  console.log(usage)
} else {
  const results = await run()
  console.log(options.json ? JSON.stringify(results, null, 2) : tables(results))
  if (options.strict && [...results.figures, ...results.cost].some(({ ok }) => !ok)) process.exitCode = 1
}

async function run(): Promise<Results> {
  const directory = await mkdtemp(join(tmpdir(), 'reflex-bench-'))
  const servers: LocalServer[] = []
  const start = async (name: string, more: Partial<ServerOptions>): Promise<string> => {
    const server = await startServer({ persist_to: join(directory, name), env: UNTRACED, ...more })
    servers.push(server)
    return server.url
  }
  const stop = async () => {
    for (const server of servers.splice(0)) await server.stop()
  }
  try {
    const lines = chosen.length > 0 ? await measureFigures(start) : []
    await stop()
    const cost = wanted(COST) ? await measureCost(start, { key: KEY, count, progress }) : []
    await stop()
    return { figures: lines, cost, peers: options.peers === undefined ? [] : await runPeers(options.peers, options.peer, progress) }
  } catch (error) {
    for (const server of servers) console.error(`\n--- ${server.url}, the end of its log:\n${server.log().slice(-4000)}`)
    throw error
  } finally {
    progress('')
    await stop()
    await rm(directory, { recursive: true, force: true })
  }
}

async function measureFigures(start: (name: string, more: Partial<ServerOptions>) => Promise<string>): Promise<Line[]> {
  progress('starting the servers')
  const vars = { REFLEX_ADMIN_KEY: KEY }
  const reflex = reflexClient(await start('reflex', { vars }), KEY)
  const other = options.before === undefined ? null : resolve(options.before, 'wrangler.toml')
  const before = other ? reflexClient(await start('before', { vars, config: other }), KEY) : null
  const bare = bareClient(await start('bare', { config: 'bench/bare/wrangler.toml' }))
  let client: Promise<SandboxClient> | undefined
  const sandbox = () => (client ??= start('sandbox', { config: 'bench/sandbox/wrangler.toml' }).then(sandboxClient))
  const lines: Line[] = []
  for (const figure of chosen) {
    const bench = { reflex, bare, sandbox, count, progress: (text: string) => progress(`${figure.name}: ${text}`) }
    lines.push(await measureFigure(figure, { before, bench, runs: options.quick ? 1 : 5 }))
  }
  return lines
}

function tables({ figures: lines, cost, peers }: Results): string {
  return [lines.length > 0 ? figureTable(lines) : '', cost.length > 0 ? costTable(cost) : '', peers.length > 0 ? peerTable(peers) : '']
    .filter((table) => table !== '')
    .map((table) => `\n${table}`)
    .join('\n')
}

/** On a terminal only, so that a program that reads the output gets nothing but the result. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001B[K${text}`)
}
