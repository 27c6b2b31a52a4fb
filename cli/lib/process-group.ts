import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { promisify } from 'node:util'

const POLL_MS = 25
const groups = new Set<number>()
let watching = false

/**
 * A child process and its descendants as one POSIX group: wrangler starts a second Node, two
 * workerds and esbuild, and a signal to wrangler alone leaves some of them running. Ctrl-C does not
 * reach such a group, so this process stops its groups when it ends.
 */
export class ProcessGroup {
  readonly child: ChildProcess
  readonly #id: number

  constructor(command: string, args: readonly string[], options: { cwd: string; env: NodeJS.ProcessEnv }) {
    if (!watching) endWithParent()
    watching = true
    this.child = spawn(command, args, { ...options, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    // 0 if it could not be spawned: the child reports that by its `error` event.
    this.#id = this.child.pid ?? 0
    if (this.#id > 0) groups.add(this.#id)
  }

  /**
   * Sends SIGTERM to the leader, which ends the others, and SIGKILL to the rest after `grace_ms`.
   */
  async stop(grace_ms = 10_000): Promise<void> {
    this.child.kill('SIGTERM')
    if (!(await this.#gone(grace_ms))) await this.kill()
    groups.delete(this.#id)
  }

  /** Sends SIGKILL to all at once and resolves when none is left. */
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

/** Zombies do not count: a container whose first process reaps none lists them forever. */
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
      // Other listeners decide about the process; without any it dies of the signal as usual.
      if (process.listenerCount(signal) === 0) process.kill(process.pid, signal)
    })
  }
}
