import type { Layout } from './memory-image.ts'

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
export type EngineModule = {
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
export function instantiate(module: WebAssembly.Module, { interrupt, full }: Host): EngineModule {
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
