import { byteLength } from '../base/json.ts'
import { ContextJson } from './context/context-json.ts'
import { Engine, type EngineAnswer, type CompiledReflex, type EngineEnd } from './engine/engine.ts'
import { sandboxLimits, type Program, type SandboxRun, type Sandbox } from './sandbox.ts'

type SandboxOptions = { fuel?: number; now?: () => number }

/** QuickJS in WebAssembly. It holds nothing before the first run. */
export class QuickJsSandbox implements Sandbox {
  readonly #module: WebAssembly.Module
  readonly #limits
  readonly #programs = new ProgramCache()
  #engine: Engine | null = null

  constructor(module: WebAssembly.Module, { fuel = sandboxLimits.fuel, now = () => performance.now() }: SandboxOptions = {}) {
    this.#module = module
    this.#limits = { ...sandboxLimits, fuel, now }
  }

  /** Bytes held, programs included. */
  get bytes(): number {
    return this.#programs.bytes + (this.#engine?.bytes ?? 0)
  }

  run(program: Program, context: unknown): SandboxRun {
    const start = this.#limits.now()
    const { ending, fuel } = this.#answer(program, context instanceof ContextJson ? context : ContextJson.of(context))
    return { ...outcomeOf(ending, fuel), fuel, duration_us: Math.round((this.#limits.now() - start) * 1000) }
  }

  dispose(): void {
    this.#engine = null
    this.#programs.clear()
  }

  #answer(program: Program, context: ContextJson): EngineAnswer {
    this.#engine ??= new Engine(this.#module, this.#limits)
    const prepared = this.#programs.get(program) ?? this.#prepare(this.#engine, program)
    return prepared.compiled ? this.#engine.run(prepared.compiled, context) : prepared.failure
  }

  #prepare(engine: Engine, { hash, code }: Program): PreparedReflex {
    const { compiled, ...failure } = engine.compile(code)
    const prepared: PreparedReflex = compiled ? { code, compiled } : { code, compiled, failure }
    // A run that the host's clock or a fault ended may succeed later.
    if (failure.ending.kind !== 'clock' && failure.ending.kind !== 'broken') this.#programs.set(hash, prepared)
    return prepared
  }
}

/** A compiled program, or the error that prevented it. */
type PreparedReflex = { code: string; compiled: CompiledReflex } | { code: string; compiled: null; failure: EngineAnswer }

/** Beyond this size the least recently used programs are dropped. */
const MOST_BYTES = 16 * 1024 * 1024
const OVERHEAD = 1024

class ProgramCache {
  readonly #programs = new Map<string, PreparedReflex>()
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  /** Compares the code, too: a wrong hash must not run another program. */
  get({ hash, code }: Program): PreparedReflex | null {
    const known = this.#programs.get(hash)
    if (known?.code !== code) return null
    this.#programs.delete(hash)
    this.#programs.set(hash, known)
    return known
  }

  set(hash: string, prepared: PreparedReflex): void {
    this.#forget(hash)
    this.#programs.set(hash, prepared)
    this.#bytes += sizeOf(prepared)
    for (const oldest of this.#programs.keys()) {
      if (this.#bytes <= MOST_BYTES) return
      this.#forget(oldest)
    }
  }

  clear(): void {
    this.#programs.clear()
    this.#bytes = 0
  }

  #forget(hash: string): void {
    const known = this.#programs.get(hash)
    if (known && this.#programs.delete(hash)) this.#bytes -= sizeOf(known)
  }
}

const sizeOf = ({ code, compiled }: PreparedReflex): number => OVERHEAD + code.length * 2 + (compiled?.image.size ?? 0)

type SandboxOutcome = Pick<SandboxRun, 'value' | 'reason' | 'error'>

/** The meaning of a run's ending, in words for the reflex's author. */
function outcomeOf(ending: EngineEnd, fuel: number): SandboxOutcome {
  switch (ending.kind) {
    case 'answer':
      return outcomeOfAnswer(ending.text)
    case 'fuel':
      return failed('limit', `it was stopped after ${fuel} units of fuel: it computes too much, or never ends`)
    case 'clock':
      return failed('limit', `it was stopped after ${sandboxLimits.run_ms} ms`)
    case 'depth':
      return failed('limit', 'the calls are nested too deeply')
    case 'memory':
      return failed('limit', 'out of memory')
    case 'too_large':
      return failed('limit', `the ${ending.what} is larger than ${ending.bytes} bytes`)
    case 'broken':
      break
  }
  return failed('error', 'it broke the interpreter, which has been put back')
}

const failed = (reason: 'error' | 'limit' | 'invalid_action', error: string): SandboxOutcome => ({ value: null, reason, error })

/** The realm's answers: `fired {json}`, `null`, `invalid why`, `error why`, `limit why`. */
function outcomeOfAnswer(text: string): SandboxOutcome {
  const [kind = ''] = text.split(' ', 1)
  const rest = text.slice(kind.length + 1)
  if (kind === 'fired') return firedWith(rest)
  if (kind === 'null') return { value: null, reason: 'null', error: null }
  if (kind === 'invalid') return failed('invalid_action', withLine(rest))
  return failed(kind === 'limit' ? 'limit' : 'error', withLine(rest))
}

function firedWith(json: string): SandboxOutcome {
  const bytes = byteLength(json)
  if (bytes <= sandboxLimits.output_bytes) return { value: JSON.parse(json), reason: 'fired', error: null }
  return failed('limit', `the action takes ${bytes} bytes as JSON; ${sandboxLimits.output_bytes} are allowed`)
}

/** Shortens an error to one line: `TypeError: not a function (line 3)`. */
function withLine(text: string): string {
  const [message = '', ...stack] = text.split('\n')
  const line = /\breflex:(\d+)/.exec(stack.join('\n'))?.[1]
  return line === undefined ? message : `${message} (line ${line})`
}
