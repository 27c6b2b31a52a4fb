/** Levels of lists and objects, and values, that a file of JSON may have. */
const DEEPEST = 128
const MOST_VALUES = 500_000

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const LIST = 0x5b
const END_OF_LIST = 0x5d
const OBJECT = 0x7b
const END_OF_OBJECT = 0x7d

/**
 * Looks at the bytes of JSON as they arrive. Parsing costs far more for brackets than for texts, so
 * that a file is refused before it is parsed.
 */
export class JsonShape {
  #depth = 0
  #values = 0
  #in_text = false
  #escaped = false

  /** The reason why the file is refused; null if nothing is wrong so far. */
  add(bytes: Uint8Array): string | null {
    for (const byte of bytes) {
      if (this.#in_text) this.#text(byte)
      else if (byte === QUOTE) this.#in_text = true
      else if (byte === LIST || byte === OBJECT) {
        this.#depth += 1
        this.#values += 1
        if (this.#depth > DEEPEST) return `is nested deeper than ${DEEPEST} levels`
      } else if (byte === END_OF_LIST || byte === END_OF_OBJECT) this.#depth -= 1
      else if (byte === COMMA) this.#values += 1
    }
    return this.#values > MOST_VALUES ? `has more than ${MOST_VALUES} values` : null
  }

  #text(byte: number): void {
    if (this.#escaped) this.#escaped = false
    else if (byte === BACKSLASH) this.#escaped = true
    else if (byte === QUOTE) this.#in_text = false
  }
}
