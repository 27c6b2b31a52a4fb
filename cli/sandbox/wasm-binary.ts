/**
 * The little of WebAssembly's binary format that the sandbox's build needs: sections, vectors,
 * numbers.
 */
export type Section = { id: number; body: Uint8Array }

export const sectionId = {
  types: 1,
  imports: 2,
  functions: 3,
  memory: 5,
  globals: 6,
  exports: 7,
  elements: 9,
  data_count: 12,
  code: 10,
  data: 11,
} as const
const HEADER = 8

export class Reader {
  at: number
  readonly #from: Uint8Array

  constructor(from: Uint8Array, at = 0) {
    this.#from = from
    this.at = at
  }

  get done(): boolean {
    return this.at >= this.#from.length
  }

  byte(): number {
    return this.#from[this.at++] ?? unknown('an early end')
  }

  bytes(length: number): Uint8Array {
    this.at += length
    return this.#from.subarray(this.at - length, this.at)
  }

  since(start: number): Uint8Array {
    return this.#from.subarray(start, this.at)
  }

  rest(): Uint8Array {
    return this.#from.subarray(this.at)
  }

  unsigned(): number {
    let value = 0
    let factor = 1
    for (;;) {
      const byte = this.byte()
      value += (byte & 0x7f) * factor
      if (byte < 0x80) return value
      factor *= 0x80
    }
  }

  vector<Item>(item: (reader: Reader) => Item): Item[] {
    return Array.from({ length: this.unsigned() }, () => item(this))
  }

  /** Reads an import behind its names: 0 is a function, 2 a memory. */
  kindOfImport(): number {
    const kind = this.byte()
    if (kind !== 0 && kind !== 2) unknown(`an import of kind ${kind}`)
    // A memory: whether it has an upper limit, the lower limit, the upper limit.
    const numbers = kind === 2 ? this.byte() + 1 : 1
    for (let left = numbers; left > 0; left -= 1) this.unsigned()
    return kind
  }

  text(): string {
    return new TextDecoder().decode(this.bytes(this.unsigned()))
  }
}

export function readSections(module: Uint8Array): Section[] {
  const reader = new Reader(module, HEADER)
  const sections: Section[] = []
  while (!reader.done) {
    const id = reader.byte()
    sections.push({ id, body: reader.bytes(reader.unsigned()) })
  }
  return sections
}

export function bodyOf(sections: readonly Section[], id: number): Uint8Array {
  return sections.find((section) => section.id === id)?.body ?? unknown(`no section ${id}`)
}

/**
 * The module with some of its sections rewritten. A memory section that it does not have is added.
 */
export function rewrite(module: Uint8Array, rewriters: Partial<Record<number, (body: Uint8Array) => Uint8Array>>): Uint8Array<ArrayBuffer> {
  const memory = rewriters[sectionId.memory]?.(new Uint8Array())
  const sections = readSections(module).flatMap(({ id, body }) => {
    const rewritten = encoded(id, rewriters[id]?.(body) ?? body)
    return id === sectionId.globals && memory ? [encoded(sectionId.memory, memory), rewritten] : [rewritten]
  })
  return concat([module.subarray(0, HEADER), ...sections])
}

const encoded = (id: number, body: Uint8Array): Uint8Array => concat([Uint8Array.of(id), sized(body)])

/** A vector with more items at its end. */
export function appended(body: Uint8Array, items: readonly Uint8Array[]): Uint8Array {
  const reader = new Reader(body)
  const count = reader.unsigned()
  return concat([unsigned(count + items.length), reader.rest(), ...items])
}

export const vectorOf = (items: readonly Uint8Array[]): Uint8Array => concat([unsigned(items.length), ...items])
export const sized = (bytes: Uint8Array): Uint8Array => concat([unsigned(bytes.length), bytes])
export const text = (value: string): Uint8Array => sized(new TextEncoder().encode(value))

export function unsigned(value: number): Uint8Array {
  const bytes: number[] = []
  for (let rest = value; ; rest = Math.floor(rest / 0x80)) {
    if (rest < 0x80) return Uint8Array.from([...bytes, rest])
    bytes.push((rest % 0x80) | 0x80)
  }
}

/**
 * A number that is not negative, as it is read where a signed one is expected: its last byte must
 * not have the sign's bit.
 */
export function signed(value: number): Uint8Array {
  const bytes = unsigned(value)
  const last = bytes.at(-1) ?? 0
  return last < 0x40 ? bytes : Uint8Array.from([...bytes.subarray(0, -1), last | 0x80, 0])
}

export function concat(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

export function unknown(what: string): never {
  throw new Error(`This WASM module has ${what}, which the sandbox's build does not know`)
}
