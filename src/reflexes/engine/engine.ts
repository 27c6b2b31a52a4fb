import type { ContextJson } from '../context/context-json.ts'
import { sandboxLimits } from '../sandbox.ts'
import { partsOf } from '../weights.ts'

type Address = number
type Functions = {
  QTS_Eval(context: Address, code: Address, bytes: number, fileName: Address, detectModule: number, flags: number): Address
  QTS_Call(context: Address, callee: Address, self: Address, count: number, args: Address): Address
  QTS_NewString(context: Address, text: Address): Address
  QTS_GetString(context: Address, value: Address): Address
  /** The error that `value` represents, or 0. */
  QTS_ResolveException(context: Address, value: Address): Address
}
const constants = ['context', 'run', 'describe', 'undefined', 'input', 'arguments', 'file_name'] as const
const layout = ['static_end', 'heap_start', 'heap_end_at'] as const
type Addresses = Record<(typeof constants)[number], Address>

/** QuickJS's functions and addresses, its fuel counter and its stack. */
type EngineModule = {
  functions: Functions
  addresses: Addresses
  layout: Layout
  memory: WebAssembly.Memory
  fuel: { value: number }
  depth: { value: number }
  stack_pointer: { value: number }
}

/** `interrupt` decides if the run stops; `full` reports that the memory is full. */
type Host = { interrupt: () => boolean; full: () => void }

/** QuickJS needs only these two of the host's functions; the others throw. */
function instantiate(module: WebAssembly.Module, { interrupt, full }: Host): EngineModule {
  const outside = WebAssembly.Module.imports(module).map(({ name }) => [name, unreachable(name)] as const)
  const imports = { ...Object.fromEntries(outside), interrupt: () => (interrupt() ? 1 : 0), grow: () => refused(full) }
  const { exports } = new WebAssembly.Instance(module, { a: imports })
  return {
    functions: exports as unknown as Functions,
    addresses: numbersOf(exports, constants),
    layout: numbersOf(exports, layout),
    memory: memoryOf(exports),
    fuel: globalOf(exports, 'fuel'),
    depth: globalOf(exports, 'depth'),
    stack_pointer: globalOf(exports, 'stack_pointer'),
  }
}

function refused(full: () => void): 0 {
  full()
  return 0
}

function unreachable(name: string) {
  return () => {
    throw new Error(`the sandbox called its host's function ${name}`)
  }
}

function numbersOf<Name extends string>(exports: WebAssembly.Exports, names: readonly Name[]): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, globalOf(exports, name).value])) as Record<Name, number>
}

function memoryOf({ memory }: WebAssembly.Exports): WebAssembly.Memory {
  if (!(memory instanceof WebAssembly.Memory)) throw new Error('sandbox.wasm has no memory')
  return memory
}

function globalOf(exports: WebAssembly.Exports, name: string): { value: number } {
  const found = exports[name]
  if (!(found instanceof WebAssembly.Global)) throw new Error(`sandbox.wasm has no global ${name}`)
  return found
}

/** The limit that stopped a run; `broken`: QuickJS itself failed. */
type Stop = 'fuel' | 'clock' | 'depth' | 'memory' | 'broken'
/** `answer`: what the realm said of it. */
export type EngineEnd = { kind: 'answer'; text: string } | { kind: Stop } | { kind: 'too_large'; what: string; bytes: number }
export type EngineAnswer = { ending: EngineEnd; fuel: number }
/** A compiled reflex: its changes to the memory, and the place of its function. */
export type CompiledReflex = { image: MemoryImage; reflex: number }
type Limits = Omit<typeof sandboxLimits, 'fuel' | 'output_bytes'> & { fuel: number; now: () => number }

/**
 * QuickJS and its memory.
 *
 * 1. Every run starts from the same bytes: the realm's, and over them the reflex's own. Nothing
 *    that a run does outlives it.
 * 2. Fuel limits every run, in any code: QuickJS's own is metered, too
 *    (cli/sandbox/meter-wasm.ts).
 * 3. A trap is harmless: the next run restores the memory and the stack, the module's only state.
 */
export class Engine {
  readonly #module: EngineModule
  readonly #memory: ImagedMemory
  readonly #words: Int32Array
  readonly #realm: MemoryImage
  readonly #stack: number
  readonly #limits: Limits
  readonly #encoder = new TextEncoder()
  readonly #decoder = new TextDecoder()
  #deadline = Infinity
  #late = false
  #full = false

  constructor(module: WebAssembly.Module, limits: Limits) {
    this.#limits = limits
    this.#module = instantiate(module, {
      interrupt: () => (this.#late ||= limits.now() > this.#deadline),
      full: () => void (this.#full = true),
    })
    this.#memory = new ImagedMemory(this.#module.memory.buffer, this.#module.layout)
    this.#words = new Int32Array(this.#module.memory.buffer)
    this.#realm = this.#memory.take()
    this.#stack = this.#module.stack_pointer.value
  }

  get bytes(): number {
    return this.#memory.bytes.length + this.#realm.size
  }

  /** Compiles a program. Errors are answers of the realm or endings. */
  compile(text: string): EngineAnswer & { compiled: CompiledReflex | null } {
    const parts = partsOf(text)
    if (!parts.ok) return { ending: { kind: 'answer', text: `error ${parts.error}` }, fuel: 0, compiled: null }
    const { code, weights } = parts
    this.#memory.restore(this.#realm)
    const { code_bytes, data_bytes, compile_fuel } = this.#limits
    let compiled: CompiledReflex | null = null
    const answer = this.#metered(compile_fuel, () => {
      const { context, input, file_name } = this.#module.addresses
      const program = this.#put(code, this.#put(weights === null ? BEFORE : BEFORE_WEIGHTED, input).end, code_bytes)
      if (!program.whole) return { kind: 'too_large', what: 'program', bytes: code_bytes }
      const source = this.#put(weights === null ? AFTER : AFTER_WEIGHTED, program.end).end - input
      let reflex = this.#module.functions.QTS_Eval(context, input, source, file_name, 0, STRICT)
      const failure = this.#failureOf(reflex)
      if (failure !== null) return failure
      if (weights !== null) {
        reflex = this.#call(reflex, ...piecesOf(weights).map((piece) => this.#newString(piece)))
        const late = this.#failureOf(reflex)
        if (late !== null) return late
      }
      const image = this.#memory.takeSince(this.#realm)
      if (image.size > data_bytes) return { kind: 'too_large', what: 'data that the program keeps', bytes: data_bytes }
      compiled = { image, reflex }
      return { kind: 'answer', text: 'null' }
    })
    return { ...answer, compiled }
  }

  run({ image, reflex }: CompiledReflex, context: ContextJson): EngineAnswer {
    const { context_bytes } = this.#limits
    if (!context.fits(context_bytes)) return { ending: { kind: 'too_large', what: 'context', bytes: context_bytes }, fuel: 0 }
    const { text, late } = context.parts
    this.#memory.restore(this.#realm, image)
    return this.#metered(this.#limits.fuel, () => {
      const values = [text, ...late].map((part) => this.#newString(part))
      return this.#answerOf(this.#call(this.#module.addresses.run, reflex, ...values))
    })
  }

  /** Length limit of a part: no part is longer than the whole context. */
  #newString(text: string): number {
    const { context, input } = this.#module.addresses
    this.#put(text, input, this.#limits.context_bytes)
    return this.#module.functions.QTS_NewString(context, input)
  }

  #metered(limit: number, work: () => EngineEnd): EngineAnswer {
    const { fuel, depth, stack_pointer } = this.#module
    stack_pointer.value = this.#stack
    fuel.value = limit
    depth.value = this.#limits.depth
    this.#late = false
    this.#full = false
    this.#deadline = this.#limits.now() + this.#limits.run_ms
    let ending: EngineEnd
    try {
      ending = this.#named(work())
    } catch (error) {
      ending = { kind: this.#spent() ?? (error instanceof RangeError ? 'depth' : 'broken') }
    }
    return { ending, fuel: Math.min(limit, limit - fuel.value) }
  }

  #spent(): Stop | null {
    if (this.#module.fuel.value < 0) return 'fuel'
    return this.#module.depth.value < 0 ? 'depth' : null
  }

  /** An error without a value: QuickJS throws null if it has no memory for an Error. */
  #named(ending: EngineEnd): EngineEnd {
    if (this.#late) return { kind: 'clock' }
    return this.#full && ending.kind === 'answer' && ending.text.startsWith('error ') ? { kind: 'memory' } : ending
  }

  #call(callee: number, ...args: readonly number[]): number {
    const { context, undefined: self, arguments: at } = this.#module.addresses
    this.#words.set(args, at / 4)
    return this.#module.functions.QTS_Call(context, callee, self, args.length, at)
  }

  #answerOf(value: number): EngineEnd {
    const failure = this.#failureOf(value)
    return failure ?? this.#textOf(value)
  }

  /** Describes a thrown value, which may run its code on the remaining fuel. */
  #failureOf(value: number): EngineEnd | null {
    const error = this.#errorIn(value)
    if (error === 0) return null
    const reason = this.#call(this.#module.addresses.describe, error)
    return this.#errorIn(reason) === 0 ? this.#textOf(reason) : { kind: 'answer', text: 'error it threw a value that cannot be described' }
  }

  #errorIn(value: number): number {
    return this.#module.functions.QTS_ResolveException(this.#module.addresses.context, value)
  }

  #textOf(value: number): EngineEnd {
    const { bytes } = this.#memory
    const start = this.#module.functions.QTS_GetString(this.#module.addresses.context, value)
    if (start === 0) return { kind: 'memory' }
    return { kind: 'answer', text: this.#decoder.decode(bytes.subarray(start, bytes.indexOf(0, start))) }
  }

  /** Writes zero-terminated text. `whole` is false if it does not fit. */
  #put(text: string, at: number, room = text.length): { end: number; whole: boolean } {
    const { read, written } = this.#encoder.encodeInto(text, this.#memory.bytes.subarray(at, at + room))
    this.#memory.bytes[at + written] = 0
    return { end: at + written, whole: read === text.length }
  }
}

/** JS_EVAL_FLAG_STRICT: code outside of the function below is strict, too. */
const STRICT = 1 << 3
/**
 * A function's scope, so that the reflex's names do not clash with the realm's. One line, to keep
 * line numbers.
 */
const BEFORE = "(function () { 'use strict'; "
const AFTER = "\n;return typeof reflex === 'function' ? reflex : undefined })()"
/** The same, for a program with weights: they are the function's arguments, piece by piece. */
const BEFORE_WEIGHTED = "(function () { const weights = [...arguments].join(''); "
const AFTER_WEIGHTED = "\n;return typeof reflex === 'function' ? reflex : undefined })"
/** A character takes up to two bytes where it is handed over. */
const PIECE = sandboxLimits.context_bytes / 2
const piecesOf = (weights: string): string[] =>
  Array.from({ length: Math.ceil(weights.length / PIECE) }, (_, index) => weights.slice(index * PIECE, (index + 1) * PIECE))

/** Bytes that lie at an address. */
type Patch = { at: number; bytes: Uint8Array }

/** The content of QuickJS's memory at one moment. */
type MemoryImage = { patches: readonly Patch[]; heap_end: number; size: number }

/** The layout: static data, the stack, then the heap from `heap_start`. */
type Layout = { static_end: number; heap_start: number; heap_end_at: number }

const BLOCK = 1024

/** A module's memory of fixed size. The stack is not part of an image. */
class ImagedMemory {
  readonly bytes: Uint8Array
  readonly #words: Int32Array
  readonly #layout: Layout

  constructor(buffer: ArrayBufferLike, layout: Layout) {
    this.bytes = new Uint8Array(buffer)
    this.#words = new Int32Array(buffer)
    this.#layout = layout
  }

  get heapEnd(): number {
    return this.#words[this.#layout.heap_end_at / 4] ?? 0
  }

  take(): MemoryImage {
    const { static_end, heap_start } = this.#layout
    return this.#image([this.#copy(0, static_end), this.#copy(heap_start, this.heapEnd)])
  }

  /** Takes the bytes that differ from `base`, the image beneath this one. */
  takeSince(base: MemoryImage): MemoryImage {
    return this.#image([...base.patches.flatMap((patch) => this.#changedIn(patch)), this.#copy(base.heap_end, this.heapEnd)])
  }

  /** Restores images, later ones over earlier ones. The rest of the heap is zeroed. */
  restore(...images: readonly [MemoryImage, ...MemoryImage[]]): void {
    const { heapEnd } = this
    for (const { patches } of images) for (const { at, bytes } of patches) this.bytes.set(bytes, at)
    const end = this.heapEnd
    if (heapEnd > end) this.bytes.fill(0, end, heapEnd)
  }

  #image(patches: Patch[]): MemoryImage {
    const size = patches.reduce((sum, { bytes }) => sum + bytes.length, 0)
    return { patches: patches.filter(({ bytes }) => bytes.length > 0), heap_end: this.heapEnd, size }
  }

  #copy = (from: number, to: number): Patch => ({ at: from, bytes: this.bytes.slice(from, to) })

  #changedIn({ at, bytes }: Patch): Patch[] {
    const patches: Patch[] = []
    let start: number | null = null
    for (let offset = 0; offset <= bytes.length; offset += BLOCK) {
      const end = Math.min(offset + BLOCK, bytes.length)
      const changed = offset < bytes.length && this.#differs(at, bytes, offset, end)
      if (changed) start ??= offset
      if (changed || start === null) continue
      patches.push(this.#copy(at + start, at + Math.min(offset, bytes.length)))
      start = null
    }
    return start === null ? patches : [...patches, this.#copy(at + start, at + bytes.length)]
  }

  #differs(at: number, bytes: Uint8Array, from: number, to: number): boolean {
    for (let offset = from; offset < to; offset += 1) if (this.bytes[at + offset] !== bytes[offset]) return true
    return false
  }
}
