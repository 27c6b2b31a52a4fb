import { spawn } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { columns, number } from './figure.ts'

/** The last line of a peer's `run.sh`, with optional figures that end in `_eps` or `_ms`. */
type Printed = { peer: string; throughput_eps?: number | null; p50_ms?: number | null; p99_ms?: number | null; [more: string]: unknown }
export type PeerLine = { name: string; figures: Record<string, number>; error?: string }

/**
 * Runs other systems on the same work. Each has a folder with a `run.sh`, which starts it, measures
 * it and stops it. `runs` are names with an argument for their `run.sh`; without any, each folder
 * runs once.
 */
export async function runPeers(directory: string, runs: readonly string[], progress: (text: string) => void): Promise<PeerLine[]> {
  const lines: PeerLine[] = []
  for (const run of runs.length > 0 ? runs : await folders(directory)) {
    progress(`peer ${run}`)
    const [name = '', ...args] = run.split(' ')
    lines.push({ name: run, ...(await measured(join(directory, name, 'run.sh'), args)) })
  }
  return lines
}

async function folders(directory: string): Promise<string[]> {
  const scripts = await readdir(directory, { recursive: true })
  return scripts.flatMap((path) => /^([^/]+)\/run\.sh$/.exec(path)?.[1] ?? []).toSorted()
}

async function measured(script: string, args: readonly string[]): Promise<Omit<PeerLine, 'name'>> {
  const output = await outputOf(script, args)
  try {
    const printed = JSON.parse(output.trim().split('\n').at(-1) ?? '') as Printed
    const known = Object.entries(printed).filter(([key, value]) => /_(?:eps|ms)$/.test(key) && typeof value === 'number')
    return { figures: Object.fromEntries(known) as Record<string, number> }
  } catch {
    return { figures: {}, error: output.trim().slice(-500) || 'it printed nothing' }
  }
}

function outputOf(script: string, args: readonly string[]): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const child = spawn(script, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, X_LOCAL_OBSERVABILITY: 'false' } })
  let output = ''
  let errors = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  child.once('error', (error) => resolve(error.message))
  child.once('close', (code) => resolve(code === 0 ? output : errors + output))
  return promise
}

export function peerTable(lines: readonly PeerLine[]): string {
  const head = ['peer', 'events/s', 'p50 ms', 'p99 ms', 'more']
  const rows = lines.map(({ name, figures: { throughput_eps, p50_ms, p99_ms, ...more }, error }) => {
    const others = Object.entries(more).map(([key, value]) => `${key} ${number(value)}`)
    const cells = [throughput_eps, p50_ms, p99_ms].map((value) => (value === undefined ? '' : number(value)))
    return [name, ...cells, error === undefined ? others.join(', ') : `failed: ${error.split('\n').at(-1)}`]
  })
  return columns([head, ...rows])
}
