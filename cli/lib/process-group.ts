import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { promisify } from 'node:util'

const POLL_MS = 25
const groups = new Set<number>()
let watching = false

/**
 * A child process and all that it starts, as one group (POSIX): wrangler starts a second Node, two workerds and esbuild, and a signal to wrangler alone leaves
 * some of them running. Ctrl-C at the terminal does not reach a group of its own, so this process takes its groups with it when it ends.
 */
export class ProcessGroup {
  readonly child: ChildProcess
  readonly #id: number

  constructor(command: string, args: readonly string[], options: { cwd: string; env: NodeJS.ProcessEnv }) {
    if (!watching) endWithParent()
    watching = true
    this.child = spawn(command, args, { ...options, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    // 0 where it could not be spawned: the child tells that by its `error` event.
    this.#id = this.child.pid ?? 0
    if (this.#id > 0) groups.add(this.#id)
  }

  /** SIGTERM to the leader, which ends the others; SIGKILL to all that is left after `grace_ms`. */
  async stop(grace_ms = 10_000): Promise<void> {
    this.child.kill('SIGTERM')
    if (!(await this.#gone(grace_ms))) await this.kill()
    groups.delete(this.#id)
  }

  /** SIGKILL to all at once; resolves when none of them is left. */
  async kill(): Promise<void> {
    signalGroup(this.#id, 'SIGKILL')
    if (!(await this.#gone(10_000))) throw new Error(`process group ${this.#id} is still there after SIGKILL`)
    groups.delete(this.#id)
  }

  async #gone(within_ms: number): Promise<boolean> {
    const until = performance.now() + within_ms
    while (await isRunning(this.#id)) {
      if (performance.now() > until) return false
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    }
    return true
  }
}

function signalGroup(id: number, signal: NodeJS.Signals | 0): boolean {
  if (id === 0) return false
  try {
    return process.kill(-id, signal)
  } catch {
    return false
  }
}

/** Zombies do not count: in a container whose first process reaps none, the dead stay listed for ever. */
async function isRunning(id: number): Promise<boolean> {
  if (!signalGroup(id, 0)) return false
  const listed = await promisify(execFile)('ps', ['-A', '-o', 'pgid=,stat=']).catch(() => null)
  if (!listed) return true
  return listed.stdout.split('\n').some((line) => {
    const [group, state = 'Z'] = line.trim().split(/\s+/)
    return Number(group) === id && !state.startsWith('Z')
  })
}

function endWithParent(): void {
  const killAll = () => groups.forEach((id) => signalGroup(id, 'SIGKILL'))
  process.once('exit', killAll)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      killAll()
      // Whoever else listens decides what becomes of the process; nobody does, so it dies of the signal as it would have.
      if (process.listenerCount(signal) === 0) process.kill(process.pid, signal)
    })
  }
}
