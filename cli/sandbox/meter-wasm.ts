import { importedFunctions, recursiveFunctions, tableByType, type Calls } from './call-graph.ts'
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
  unknown,
  unsigned,
  vectorOf,
  type Section,
} from './wasm-binary.ts'

/**
 * Rewrites a WASM module so that it counts its own work and the depth of its own calls, and traps
 * where either is spent. Nothing that it does can then run on: not a builtin's own loop, not a
 * regular expression, no comparison of long strings.
 *
 * 1. A `loop` takes 1 of `fuel` where a turn starts, and a function 1 where it starts, except
 *    short ones without a loop; `memory.copy` and `memory.fill` take 1 for each 64 bytes. So every
 *    cycle, in the code or in the calls, passes the counter.
 * 2. A function that closes a recursion takes 1, too, however short, and of `depth` what its frame
 *    may need, which it gives back where it returns: the engine's own stack, whose size differs
 *    from host to host, is not what ends a recursion.
 * 3. The globals `fuel` and `depth` (i32, below zero once spent) are exported, and `stack_pointer`,
 *    the module's first. After a trap its user sets all three.
 * 4. All else is kept byte for byte. What this does not know (SIMD, threads, exceptions) is an
 *    error, not a guess.
 */
export function meterWasm(module: Uint8Array): Uint8Array<ArrayBuffer> {
  const sections = readSections(module)
  const functions = readFunctions(sections)
  const typeOf = (index: number): number => functions[index]?.type ?? unknown('a lost function')
  const imported = importedFunctions(sections)
  const recursive = recursiveFunctions(
    functions.map(({ instructions }) => callsOf(instructions, imported)),
    tableByType(sections, typeOf),
  )
  const fuel = new Reader(bodyOf(sections, sectionId.globals)).unsigned()
  return rewrite(module, {
    [sectionId.globals]: (body) => appended(body, [counterAt(PLENTY), counterAt(PLENTY)]),
    [sectionId.exports]: (body) =>
      appended(body, [exportedGlobal('fuel', fuel), exportedGlobal('depth', fuel + 1), exportedGlobal('stack_pointer', 0)]),
    [sectionId.code]: () =>
      vectorOf(functions.map((code, index) => sized(meterFunction(code, { fuel, depth: recursive.has(index) ? fuel + 1 : null })))),
  })
}

/** Initial value of the counters, enough for the module's set-up. */
const PLENTY = 0x7fff_ffff

export const exportedGlobal = (name: string, global: number): Uint8Array => concat([text(name), Uint8Array.of(0x03), unsigned(global)])

const counterAt = (value: number): Uint8Array => Uint8Array.from([I32, 0x01, CONST, ...signed(value), END])

type FunctionType = { parameters: number; result: number }
type Code = FunctionType & { type: number; body: Uint8Array; groups: Uint8Array[]; locals: number; instructions: Instruction[] }

function readFunctions(sections: readonly Section[]): Code[] {
  const types = functionTypes(bodyOf(sections, sectionId.types))
  const typeIndexes = new Reader(bodyOf(sections, sectionId.functions)).vector((reader) => reader.unsigned())
  const bodies = new Reader(bodyOf(sections, sectionId.code)).vector((reader) => reader.bytes(reader.unsigned()))
  return bodies.map((body, index) => {
    const type = typeIndexes[index] ?? unknown('code of no function')
    return readFunction(body, type, types[type] ?? unknown('a lost type'))
  })
}

function functionTypes(types: Uint8Array): FunctionType[] {
  return new Reader(types).vector((reader) => {
    if (reader.byte() !== 0x60) unknown('a type that is no function')
    const parameters = reader.vector(() => reader.byte()).length
    const [result = NOTHING, ...more] = reader.vector(() => reader.byte())
    return more.length === 0 ? { parameters, result } : unknown('a function with two results')
  })
}

function readFunction(body: Uint8Array, type: number, { parameters, result }: FunctionType): Code {
  const reader = new Reader(body)
  let locals = parameters
  const groups = reader.vector(() => {
    const start = reader.at
    locals += reader.unsigned()
    reader.byte()
    return reader.since(start)
  })
  return { type, parameters, result, body, groups, locals, instructions: readInstructions(reader) }
}

function callsOf(instructions: readonly Instruction[], imported: number): Calls {
  const targets = (opcode: number) => instructions.flatMap((each) => (each.opcode === opcode ? [new Reader(each.bytes, 1).unsigned()] : []))
  return { direct: targets(CALL).flatMap((index) => (index < imported ? [] : [index - imported])), byType: targets(CALL_INDIRECT) }
}

/** In instructions. What is shorter costs less than to count it: a tenth of a run. */
const SHORT = 128
/** Maximum stack that an engine uses for a call: the call itself, and 8 bytes for each local. */
const FRAME_BYTES = 128
const LOCAL_BYTES = 8

function meterFunction(
  { body, groups, locals, result, instructions }: Code,
  { fuel, depth }: { fuel: number; depth: number | null },
): Uint8Array {
  const loops = instructions.some(({ opcode, extended }) => opcode === LOOP || extended !== null)
  if (!loops && depth === null && instructions.length < SHORT) return body
  // Another local, to keep the length of a copy in.
  const head = concat([vectorOf([...groups, Uint8Array.of(1, I32)]), take(fuel, 1)])
  const code = concat(instructions.flatMap((instruction) => metered(instruction, fuel, locals, depth !== null)))
  if (depth === null) return concat([head, code])
  const frame = FRAME_BYTES + LOCAL_BYTES * locals
  // The whole body in a block, that every way out of it leads past its end.
  return concat([head, take(depth, frame), Uint8Array.of(BLOCK, result), code, add(depth, frame), Uint8Array.of(END)])
}

type Instruction = { opcode: number; extended: number | null; nesting: number; bytes: Uint8Array }

function readInstructions(reader: Reader): Instruction[] {
  const instructions: Instruction[] = []
  let nesting = 0
  while (!reader.done) {
    const start = reader.at
    const opcode = reader.byte()
    const extended = opcode === EXTENDED ? reader.unsigned() : null
    skipImmediates(reader, opcode, extended)
    instructions.push({ opcode, extended, nesting, bytes: reader.since(start) })
    if (opcode === BLOCK || opcode === LOOP || opcode === IF) nesting += 1
    if (opcode === END) nesting -= 1
  }
  return instructions
}

function metered({ opcode, extended, nesting, bytes }: Instruction, fuel: number, local: number, wrapped: boolean): Uint8Array[] {
  if (extended === MEMORY_COPY || extended === MEMORY_FILL) return [takeLength(fuel, local), bytes]
  if (opcode === LOOP) return [bytes, take(fuel, 1)]
  if (opcode === RETURN && wrapped) return [Uint8Array.from([BRANCH, ...unsigned(nesting)])]
  return [bytes]
}

const BLOCK = 0x02
const LOOP = 0x03
const IF = 0x04
const END = 0x0b
const BRANCH = 0x0c
const RETURN = 0x0f
const CALL = 0x10
const CALL_INDIRECT = 0x11
const GET_GLOBAL = 0x23
const SET_GLOBAL = 0x24
const CONST = 0x41
const I32 = 0x7f
const NOTHING = 0x40
const ADD = 0x6a
const SUBTRACT = 0x6b
const LESS = 0x48
const EXTENDED = 0xfc
const MEMORY_COPY = 10
const MEMORY_FILL = 11

/** global = global - amount; if (global < 0) trap */
function take(global: number, amount: number): Uint8Array {
  const at = unsigned(global)
  const by = signed(amount)
  const subtract = [GET_GLOBAL, ...at, CONST, ...by, SUBTRACT, SET_GLOBAL, ...at]
  return Uint8Array.from([...subtract, GET_GLOBAL, ...at, CONST, 0, LESS, IF, NOTHING, 0x00, END])
}

function add(global: number, amount: number): Uint8Array {
  const at = unsigned(global)
  return Uint8Array.from([GET_GLOBAL, ...at, CONST, ...signed(amount), ADD, SET_GLOBAL, ...at])
}

/**
 * fuel = fuel - (length >>> 6), where the length lies on top of the stack and stays there. The next
 * `take` traps.
 */
function takeLength(fuel: number, local: number): Uint8Array {
  const global = unsigned(fuel)
  const length = unsigned(local)
  return Uint8Array.from([0x22, ...length, GET_GLOBAL, ...global, 0x20, ...length, CONST, 6, 0x76, SUBTRACT, SET_GLOBAL, ...global])
}

function skipImmediates(reader: Reader, opcode: number, extended: number | null): void {
  if (extended !== null) return skip(reader, AFTER_EXTENDED[extended] ?? unknown(`the instruction 0xfc ${extended}`))
  if (opcode === 0x0e) return skip(reader, reader.unsigned() + 1)
  if (opcode === 0x1c) return skip(reader, reader.unsigned())
  if (opcode === 0x43) return void reader.bytes(4)
  if (opcode === 0x44) return void reader.bytes(8)
  const plain = AFTER.find(([from, to]) => opcode >= from && opcode <= to)
  skip(reader, plain?.[2] ?? unknown(`the instruction 0x${opcode.toString(16)}`))
}

function skip(reader: Reader, numbers: number): void {
  for (let left = numbers; left > 0; left -= 1) reader.unsigned()
}

/**
 * Opcodes from, to, and how many LEB128 numbers follow; where one ends does not depend on its sign.
 */
const AFTER: readonly [number, number, number][] = [
  [0x00, 0x01, 0],
  [0x02, 0x04, 1],
  [0x05, 0x05, 0],
  [0x0b, 0x0b, 0],
  [0x0c, 0x0d, 1],
  [0x0f, 0x0f, 0],
  [0x10, 0x10, 1],
  [0x11, 0x11, 2],
  [0x1a, 0x1b, 0],
  [0x20, 0x26, 1],
  [0x28, 0x3e, 2],
  [0x3f, 0x42, 1],
  [0x45, 0xc4, 0],
  [0xd0, 0xd0, 1],
  [0xd1, 0xd1, 0],
  [0xd2, 0xd2, 1],
]
const AFTER_EXTENDED: readonly number[] = [0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 2, 1, 2, 1, 2, 1, 1, 1]
