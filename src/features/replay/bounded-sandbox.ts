import type { Computing } from '../../base/computing.ts'
import { FUEL_PER_RUN } from '../../reflexes/decide.ts'
import type { Program, SandboxRun, Sandbox } from '../../reflexes/sandbox.ts'
import { Unrecorded } from './report.ts'

/** Runs of one program that a limit stopped, after which a replay runs it no more. */
const MOST_STOPPED = 3

/** The sandbox of one replay: within the budget of who asked for it. */
export class BoundedSandbox implements Sandbox {
  readonly #sandbox: Sandbox
  readonly #computing: Computing
  readonly #stopped = new Map<string, number>()

  constructor(sandbox: Sandbox, computing: Computing) {
    this.#sandbox = sandbox
    this.#computing = computing
  }

  run(program: Program, context: unknown): SandboxRun {
    const stopped = this.#stopped.get(program.hash) ?? 0
    if (stopped >= MOST_STOPPED) throw new Unrecorded(`a limit stopped the reflex in ${stopped} runs of this replay, which runs it no more`)
    if (this.#computing.left <= 0)
      throw new Unrecorded(
        'the key has used up what it may compute in a minute, or gave its place to another key: replay a shorter range, or try again in a minute',
      )
    const run = this.#sandbox.run(program, context)
    this.#computing.spend(run.fuel + FUEL_PER_RUN)
    if (run.reason === 'limit') this.#stopped.set(program.hash, stopped + 1)
    return run
  }

  dispose(): void {}
}
