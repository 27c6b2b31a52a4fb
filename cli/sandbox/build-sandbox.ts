import { compile } from './compile.ts'
import { meterWasm, exportedGlobal } from './meter-wasm.ts'
import {
  appended,
  bodyOf,
  concat,
  Reader,
  readSections,
  rewrite,
  sectionId,
  signed,
  sized,
  text,
  unsigned,
  vectorOf,
} from './wasm-binary.ts'
import load from '@jitl/quickjs-wasmfile-release-sync/emscripten-module'
import { QuickJSFFI } from '@jitl/quickjs-wasmfile-release-sync/ffi'

const PAGE = 65_536
/** The size that the module asks for. It runs with less than it boots with. */
const BOOT_PAGES = 256
/**
 * Maximum heap of a reflex. QuickJS's own limit does not work here: built by Emscripten, it counts
 * 8 bytes for every allocation, whatever its size. So the whole memory has this much room behind
 * the realm, and never grows.
 */
const HEAP_BYTES = 4 * 1024 * 1024
const STACK_BYTES = 256 * 1024
/** Space for a program of 64 kB and its wrapper, or for a context. */
const INPUT_BYTES = PAGE + 1024
const MOST_ARGUMENTS = 64
/**
 * Base objects, eval (to compile with; the realm takes it away), normalize, RegExp and its
 * compiler, JSON, Map and Set.
 */
const INTRINSICS = 1 + 4 + 8 + 16 + 32 + 64 + 256

type ContextPointer = ReturnType<QuickJSFFI['QTS_NewContext']>
type ValuePointer = ReturnType<QuickJSFFI['QTS_Eval']>
type Flags = Parameters<QuickJSFFI['QTS_NewContext']>[1]
type EvalParameters = Parameters<QuickJSFFI['QTS_Eval']>
type CodePointer = EvalParameters[1]
const AS_SCRIPT = [0, 0] as unknown as [EvalParameters[4], EvalParameters[5]]

type Booted = { memory: Uint8Array; pages: number; constants: Record<string, number> }

/**
 * Runs the realm's source in a fresh instance and returns its memory, with the addresses that the
 * sandbox calls by.
 */
async function bootRealm(module: WebAssembly.Module, realm: string): Promise<Booted> {
  const { instance, quickjs, memory } = await instantiate(module)
  const stack = Number(exportedGlobalOf(instance, 'stack_pointer').value)
  const bytes = new Uint8Array(memory.buffer)
  const heapEndAt = findHeapEnd(quickjs, bytes, stack)
  const ffi = new QuickJSFFI(quickjs)
  const keep = (text: string) => {
    const encoded = new TextEncoder().encode(`${text}\0`)
    const at = quickjs._malloc(encoded.length)
    bytes.set(encoded, at)
    return at as CodePointer
  }
  const runtime = ffi.QTS_NewRuntime()
  ffi.QTS_RuntimeSetMaxStackSize(runtime, STACK_BYTES)
  ffi.QTS_RuntimeEnableInterruptHandler(runtime)
  const context = ffi.QTS_NewContext(runtime, INTRINSICS as Flags)
  const input = quickjs._malloc(INPUT_BYTES)
  const source = keep(realm)
  const made = ffi.QTS_Eval(context, source, Buffer.byteLength(realm), 'realm', ...AS_SCRIPT)
  throwIfFailed(ffi, quickjs, context, made)
  quickjs._free(source)
  const constants = {
    context,
    run: ffi.QTS_GetPropNumber(context, made, 0),
    describe: ffi.QTS_GetPropNumber(context, made, 1),
    undefined: ffi.QTS_GetUndefined(),
    input,
    arguments: quickjs._malloc(MOST_ARGUMENTS * 4),
    file_name: keep('reflex'),
    heap_start: stack,
    heap_end_at: heapEndAt,
    static_end: stack - STACK_REGION,
  }
  bytes.fill(0, constants.static_end, stack)
  const heapEnd = new Int32Array(memory.buffer)[heapEndAt / 4] ?? 0
  const pages = Math.ceil((heapEnd + HEAP_BYTES) / PAGE)
  return { memory: bytes.subarray(0, heapEnd), pages, constants }
}

/**
 * Emscripten's -s STACK_SIZE of this build: the stack lies between the static data and the heap.
 */
const STACK_REGION = 5 * 1024 * 1024

async function instantiate(module: WebAssembly.Module) {
  const memory = new WebAssembly.Memory({ initial: BOOT_PAGES, maximum: BOOT_PAGES })
  let instance: WebAssembly.Instance | undefined
  const options = {
    // Else the path of this script would lie in the memory.
    thisProgram: 'sandbox',
    wasmMemory: memory,
    instantiateWasm(imports: WebAssembly.Imports, onSuccess: (instance: WebAssembly.Instance) => void) {
      instance = new WebAssembly.Instance(module, imports)
      onSuccess(instance)
      return instance.exports
    },
  }
  const quickjs = await load(options)
  const refuse = () => {
    throw new Error('the realm called its host')
  }
  quickjs.callbacks = {
    shouldInterrupt: () => 0,
    callFunction: refuse,
    freeHostRef: refuse,
    loadModuleSource: refuse,
    normalizeModule: refuse,
  }
  if (!instance) throw new Error('the module was not instantiated')
  return { instance, quickjs, memory }
}

function exportedGlobalOf({ exports }: WebAssembly.Instance, name: string): WebAssembly.Global {
  const found = exports[name]
  if (!(found instanceof WebAssembly.Global)) throw new Error(`the module exports no global ${name}`)
  return found
}

/**
 * The word in which the allocator keeps the end of the heap: of the static ones, the highest that a
 * large allocation raises.
 */
function findHeapEnd(quickjs: Quickjs, memory: Uint8Array, stack: number): number {
  const words = new Int32Array(memory.buffer, 0, (stack - STACK_REGION) / 4)
  const before = words.slice()
  const block = quickjs._malloc(PAGE)
  const raised = [...words.keys()].filter((at) => words[at] !== before[at] && Number(words[at]) >= block + PAGE)
  quickjs._free(block)
  const [highest, next] = raised.toSorted((one, other) => Number(words[other]) - Number(words[one]))
  if (highest === undefined || words[highest] === words[next ?? -1]) throw new Error('the end of the heap was not found')
  return highest * 4
}

type Quickjs = Awaited<ReturnType<typeof load>>

function throwIfFailed(ffi: QuickJSFFI, quickjs: Quickjs, context: ContextPointer, value: ValuePointer): void {
  const error = ffi.QTS_ResolveException(context, value)
  if (error) throw new Error(`the realm failed: ${quickjs.UTF8ToString(ffi.QTS_Dump(context, error))}`)
}

type Names = Record<string, string>
type Seal = { imports: Names; exports: Names; constants: Record<string, number>; memory: Uint8Array; pages: number }

/**
 * Makes a module that starts where another one stood: its memory becomes the data, its addresses
 * exported constants. The memory is its own, of a size that never changes. Imports and exports get
 * names that say what they are (Emscripten has minified them); an export without a name is no
 * longer one.
 */
function sealWasm(module: Uint8Array, { imports, exports, constants, memory, pages }: Seal): Uint8Array<ArrayBuffer> {
  const globals = new Reader(bodyOf(readSections(module), sectionId.globals)).unsigned()
  const segments = segmentsOf(memory)
  return rewrite(module, {
    [sectionId.imports]: (body) => vectorOf(new Reader(body).vector((reader) => renamedImport(reader, imports)).filter(isKept)),
    [sectionId.memory]: () => vectorOf([Uint8Array.from([LIMITED, ...unsigned(pages), ...unsigned(pages)])]),
    [sectionId.globals]: (body) => appended(body, Object.values(constants).map(constant)),
    [sectionId.exports]: (body) => {
      const kept = new Reader(body).vector((reader) => renamedExport(reader, exports)).filter(isKept)
      const memory = concat([text('memory'), Uint8Array.of(MEMORY, 0)])
      return vectorOf([...kept, memory, ...Object.keys(constants).map((name, index) => exportedGlobal(name, globals + index))])
    },
    [sectionId.data_count]: () => unsigned(segments.length),
    [sectionId.data]: () => vectorOf(segments),
  })
}

const isKept = (entry: Uint8Array | null): entry is Uint8Array => entry !== null
const constant = (value: number): Uint8Array => Uint8Array.from([0x7f, 0x00, 0x41, ...signed(value), 0x0b])

/** Null for the memory, which becomes the module's own. */
function renamedImport(reader: Reader, names: Names): Uint8Array | null {
  const from = reader.text()
  const name = reader.text()
  const start = reader.at
  const kind = reader.kindOfImport()
  return kind === MEMORY ? null : concat([text(from), text(names[name] ?? name), reader.since(start)])
}

const MEMORY = 0x02
/** A memory's limits begin with this where it has an upper one; the lower and the upper follow. */
const LIMITED = 0x01

function renamedExport(reader: Reader, names: Names): Uint8Array | null {
  const name = names[reader.text()]
  const target = concat([Uint8Array.of(reader.byte()), unsigned(reader.unsigned())])
  return name === undefined ? null : concat([text(name), target])
}

const BLOCK = 64

/** The bytes that are not zero, in segments. Small gaps are kept, since a segment has a cost. */
function segmentsOf(memory: Uint8Array): Uint8Array[] {
  const segments: Uint8Array[] = []
  let start: number | null = null
  for (let at = 0; at <= memory.length; at += BLOCK) {
    const block = memory.subarray(at, at + BLOCK)
    const used = block.some((byte) => byte !== 0)
    if (used) start ??= at
    if (used || start === null) continue
    segments.push(concat([Uint8Array.from([0x00, 0x41, ...signed(start), 0x0b]), sized(memory.subarray(start, at))]))
    start = null
  }
  return segments
}

type SandboxParts = { quickjs: Uint8Array; glue: string; realm: string }

/** QuickJS, metered, with the realm already in its memory. The same parts give the same bytes. */
export async function buildSandbox({ quickjs, glue, realm }: SandboxParts): Promise<Uint8Array<ArrayBuffer>> {
  const metered = meterWasm(quickjs)
  const booted = await withoutSurroundings(() => bootRealm(compile(metered), realm))
  return sealWasm(metered, { imports: importNames(glue), exports: exportNames(glue), ...booted })
}

/**
 * QuickJS seeds Math.random, which the realm takes away, with the time, and Emscripten keeps the
 * language: the bytes would differ.
 */
async function withoutSurroundings<Result>(work: () => Promise<Result>): Promise<Result> {
  const { now } = Date
  const navigator = Object.getOwnPropertyDescriptor(globalThis, 'navigator')
  Date.now = () => 0
  Object.defineProperty(globalThis, 'navigator', { value: { language: 'C' }, configurable: true })
  try {
    return await work()
  } finally {
    Date.now = now
    if (navigator) Object.defineProperty(globalThis, 'navigator', navigator)
  }
}

const FUNCTIONS = ['QTS_Eval', 'QTS_Call', 'QTS_NewString', 'QTS_GetString', 'QTS_ResolveException']

/**
 * The minified names of what the sandbox calls, read out of Emscripten's JavaScript:
 * `d._QTS_Call=b.ma`.
 */
function exportNames(glue: string): Record<string, string> {
  const found = Array.from(glue.matchAll(/\b_(\w+)=\w+\.([\w$]+)/g), ([, name = '', minified = '']): [string, string] => [minified, name])
  const kept = found.filter(([, name]) => FUNCTIONS.includes(name))
  if (kept.length !== FUNCTIONS.length) throw new Error(`not all of ${FUNCTIONS.join(', ')} were found`)
  return { ...Object.fromEntries(kept), fuel: 'fuel', depth: 'depth', stack_pointer: 'stack_pointer' }
}

function importNames(glue: string): Record<string, string> {
  const interrupt = /([\w$]+):function\(\w+\)\{return \w+\.callbacks\.shouldInterrupt/.exec(glue)?.[1]
  const grow = /([\w$]+):\w+=>\{var \w+=\w+\.length;\w+>>>=0;/.exec(glue)?.[1]
  if (interrupt === undefined || grow === undefined) throw new Error('not all imports were found')
  return { [interrupt]: 'interrupt', [grow]: 'grow' }
}
