import { exportedGlobal } from './meter-wasm.ts'
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

type Names = Record<string, string>
type Seal = { imports: Names; exports: Names; constants: Record<string, number>; memory: Uint8Array; pages: number }

/**
 * Makes a module that starts where another one stood: its memory becomes the data, its addresses
 * exported constants. The memory is its own, of a size that never changes. Imports and exports get
 * names that say what they are (Emscripten has minified them); an export without a name is no
 * longer one.
 */
export function sealWasm(module: Uint8Array, { imports, exports, constants, memory, pages }: Seal): Uint8Array<ArrayBuffer> {
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
