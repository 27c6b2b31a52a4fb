import { execFile } from 'node:child_process'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { ServerOptions } from '../../cli/lib/local-server.ts'
import { ended, until, type ReflexClient } from '../clients.ts'

/** A server of its own, whose folder and processes are measured. */
export type Place = { reflex: ReflexClient; folder: string; stop: () => Promise<void> }
/** `name`: of the folder. A server that is started on it again continues. */
export type Open = (name: string, more?: Pick<ServerOptions, 'script' | 'config' | 'vars'>) => Promise<Place>
/** A measurement of what is large. `target`: as it is printed. */
export type ScaleLine = { what: string; value: number; unit: string; target: string; ok: boolean | null }
export type ScaleOptions = { open: Open; scopes: number | undefined; events: number | undefined; progress: (text: string) => void }

const run = promisify(execFile)
type Process = { pid: number; parent: number; bytes: number; args: string }
/** The kernel counts the time of a process in ticks of this length. */
const TICK_MS = 10

async function processes(): Promise<Process[]> {
  const { stdout } = await run('ps', ['-eo', 'pid=,ppid=,rss=,args='], { maxBuffer: 64_000_000 })
  return stdout.split('\n').flatMap((line) => {
    const [, pid, parent, kilobytes, args = ''] = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? []
    return pid === undefined ? [] : [{ pid: Number(pid), parent: Number(parent), bytes: Number(kilobytes) * 1024, args }]
  })
}

/** The processes of workerd of the server on this folder: its proxy, and the Worker. */
async function workerdOn(folder: string): Promise<Process[]> {
  const all = await processes()
  const own = new Set(all.filter(({ args }) => args.includes(folder)).map(({ pid }) => pid))
  for (let before = 0; before < own.size;) {
    before = own.size
    for (const { pid, parent } of all) if (own.has(parent)) own.add(pid)
  }
  return all.filter(({ pid, args }) => own.has(pid) && /\bworkerd\b/.test(args) && !/\bnode\b/.test(args.split(' ')[0] ?? ''))
}

/** Bytes of memory that the workerd of the server on this folder has. */
export async function memoryOf(folder: string): Promise<number> {
  return (await workerdOn(folder)).reduce((sum, { bytes }) => sum + bytes, 0)
}

/** ms of CPU that each of these processes has had, in the kernel's ticks. Linux alone counts it. */
export async function computedOn(folder: string): Promise<number> {
  const times = (await workerdOn(folder)).map(async ({ pid }) => {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
    // The name before it may hold spaces.
    const [user = 0, system = 0] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 13)
      .map(Number)
    return (user + system) * TICK_MS
  })
  return (await Promise.all(times)).reduce((sum, ms) => sum + ms, 0)
}

/** Bytes on the disk of all files in the folder whose path matches. */
export async function bytesOn(folder: string, pattern: RegExp): Promise<number> {
  let sum = 0
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    // The server deletes journals meanwhile.
    if (entry.isFile() && pattern.test(path)) sum += (await stat(path).catch(() => ({ blocks: 0 }))).blocks * 512
  }
  return sum
}

export const line = (what: string, value: number, unit: string, target?: { at_least: number } | { at_most: number }): ScaleLine => {
  if (!target) return { what, value, unit, target: '', ok: null }
  if ('at_least' in target) return { what, value, unit, target: `≥ ${target.at_least}`, ok: value >= target.at_least }
  return { what, value, unit, target: `≤ ${target.at_most}`, ok: value <= target.at_most }
}

type Through = { lines: readonly { scope: string }[]; last: readonly string[]; pause_ms?: number }

/** Work that sends these events, and resolves once the events of the last scopes have ended. */
export async function throughScopes(
  reflex: ReflexClient,
  { lines, last, pause_ms }: Through,
  send: () => Promise<void>,
): Promise<() => Promise<void>> {
  const counted = async (scope: string) => ended(await reflex.state(scope))
  const before = await Promise.all(last.map(async (scope) => [scope, await counted(scope)] as const))
  const due = Map.groupBy(lines, ({ scope }) => scope)
  return async () => {
    await send()
    for (const [scope, count] of before) {
      const least = count + (due.get(scope)?.length ?? 0)
      const options = { what: `the events of ${scope}`, timeout_ms: 600_000, ...(pause_ms !== undefined && { pause_ms }) }
      await until(async () => (await counted(scope)) >= least, options)
    }
  }
}
