import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startServer, type LocalServer, type ServerOptions } from '../cli/lib/local-server.ts'
import { bareClient } from './bare-client.ts'
import { directPath } from './direct-path.ts'
import type { Bench } from './figure.ts'
import { fullInbox } from './full-inbox.ts'
import { queueGrouped, queuePath } from './queue-path.ts'
import { reflexClient } from './reflex-client.ts'
import { reflexCold, reflexFirst, reflexHostile, reflexMemory, reflexWarm } from './reflex-sandbox.ts'
import { reflexSocket } from './reflex-socket.ts'
import { lineOf, table, type Line } from './report.ts'
import { sandboxClient, type SandboxClient } from './sandbox-client.ts'
import { socket } from './socket.ts'
import { bulletin, gateDecision, toolLog, toolProxy } from './skills.ts'
import { turnOverhead, turnWithSkills } from './turn-overhead.ts'

const figures = [
  queuePath,
  queueGrouped,
  directPath,
  socket,
  reflexSocket,
  reflexWarm,
  reflexFirst,
  reflexCold,
  reflexMemory,
  reflexHostile,
  turnOverhead,
  turnWithSkills,
  gateDecision,
  bulletin,
  toolProxy,
  toolLog,
  fullInbox,
]
const usage = `npm run bench -- [--only ${figures.map(({ name }) => name).join('|')}]… [--quick] [--json] [--strict]

Prints design.md's figures as ratios to a bare Worker, both under wrangler dev, in turns. It always exits with 0, but for --strict where a target is missed.
wrangler dev traces each storage call of both, which the targets count in: X_LOCAL_OBSERVABILITY=false leaves that out, and what a bare loop takes with it.`
const KEY = 'bench-admin-key'

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [] },
    quick: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    strict: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
const chosen = figures.filter(({ name }) => options.only.length === 0 || options.only.includes(name))
if (options.help || chosen.length === 0) {
  console.log(usage)
} else {
  const lines = await run()
  console.log(options.json ? JSON.stringify(lines, null, 2) : `\n${table(lines)}`)
  if (options.strict && lines.some(({ ok }) => !ok)) process.exitCode = 1
}

async function run(): Promise<Line[]> {
  const directory = await mkdtemp(join(tmpdir(), 'reflex-bench-'))
  const servers: LocalServer[] = []
  const start = async (name: string, more: Partial<ServerOptions>): Promise<string> => {
    const server = await startServer({ persist_to: join(directory, name), ...more })
    servers.push(server)
    return server.url
  }
  try {
    progress('starting both servers')
    const reflex = reflexClient(await start('reflex', { vars: { REFLEX_ADMIN_KEY: KEY } }), KEY)
    const bare = bareClient(await start('bare', { config: 'bench/bare/wrangler.toml' }))
    let client: Promise<SandboxClient> | undefined
    const sandbox = () => (client ??= start('sandbox', { config: 'bench/sandbox/wrangler.toml' }).then(sandboxClient))
    return await measureAll({ reflex, bare, sandbox, quick: options.quick, runs: options.quick ? 2 : 5 })
  } catch (error) {
    for (const server of servers) console.error(`\n--- ${server.url}, the end of its log:\n${server.log().slice(-4000)}`)
    throw error
  } finally {
    await Promise.all(servers.map((server) => server.stop()))
    await rm(directory, { recursive: true, force: true })
  }
}

async function measureAll(bench: Omit<Bench, 'progress'>): Promise<Line[]> {
  const lines: Line[] = []
  for (const figure of chosen) {
    const samples = await figure.measure({ ...bench, progress: (text) => progress(`${figure.name}: ${text}`) })
    lines.push(lineOf(figure, samples))
  }
  progress('')
  return lines
}

/** On a terminal only, and beside the result: what reads the output gets the result alone. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001B[K${text}`)
}
