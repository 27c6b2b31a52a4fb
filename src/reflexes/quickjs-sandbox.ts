import { ContextJson } from './context-json.ts'
import { Engine, type Answer } from './engine/engine.ts'
import { outcomeOf } from './outcome.ts'
import { ProgramCache, type Prepared } from './program-cache.ts'
import { sandboxLimits, type Program, type Run, type Sandbox } from './sandbox.ts'

type Options = { fuel?: number; now?: () => number }

/** QuickJS in WebAssembly. It holds nothing before the first run. */
export class QuickJsSandbox implements Sandbox {
  readonly #module: WebAssembly.Module
  readonly #limits
  readonly #programs = new ProgramCache()
  #engine: Engine | null = null

  constructor(module: WebAssembly.Module, { fuel = sandboxLimits.fuel, now = () => performance.now() }: Options = {}) {
    this.#module = module
    this.#limits = { ...sandboxLimits, fuel, now }
  }

  /** What it holds, programs included. */
  get bytes(): number {
    return this.#programs.bytes + (this.#engine?.bytes ?? 0)
  }

  run(program: Program, context: unknown): Run {
    const start = this.#limits.now()
    const { ending, fuel } = this.#answer(program, context instanceof ContextJson ? context : ContextJson.of(context))
    return { ...outcomeOf(ending, fuel), fuel, duration_us: Math.round((this.#limits.now() - start) * 1000) }
  }

  dispose(): void {
    this.#engine = null
    this.#programs.clear()
  }

  #answer(program: Program, context: ContextJson): Answer {
    this.#engine ??= new Engine(this.#module, this.#limits)
    const prepared = this.#programs.get(program) ?? this.#prepare(this.#engine, program)
    return prepared.compiled ? this.#engine.run(prepared.compiled, context) : prepared.failure
  }

  #prepare(engine: Engine, { hash, code }: Program): Prepared {
    const { compiled, ...failure } = engine.compile(code)
    const prepared: Prepared = compiled ? { code, compiled } : { code, compiled, failure }
    // What the host's clock or a fault has ended may end well another time.
    if (failure.ending.kind !== 'clock' && failure.ending.kind !== 'broken') this.#programs.set(hash, prepared)
    return prepared
  }
}
