import { fitsBytes } from '../../base/byte-length.ts'

const LARGE = 256
/** A reference to a shorter text saves nothing. */
const SHARED = 32
const MOST_LATE = 24

/** A context as JSON, field by field: written once for the sandbox, the hash and the log. */
export class ContextJson {
  readonly #fields: ReadonlyMap<string, string>
  readonly #items: readonly string[]
  #text: string | null = null

  private constructor(fields: ReadonlyMap<string, string>, items: readonly string[] = []) {
    this.#fields = fields
    this.#items = items
  }

  get text(): string {
    return (this.#text ??= textOf(this.#fields))
  }

  /** True if the whole context takes at most this many bytes. */
  fits(bytes: number): boolean {
    return fitsBytes(this.text, bytes)
  }

  /**
   * `known`: fields whose JSON the caller has. `items`: JSON within fields that other contexts
   * repeat. A value that is not an object has no fields.
   */
  static of(context: unknown, known: Readonly<Record<string, string>> = {}, items: readonly string[] = []): ContextJson {
    if (typeof context !== 'object' || context === null || Array.isArray(context)) {
      const json = new ContextJson(new Map())
      json.#text = JSON.stringify(context) ?? 'null'
      return json
    }
    const fields = new Map<string, string>()
    for (const [name, value] of Object.entries(context)) {
      const json = Object.hasOwn(known, name) ? known[name] : JSON.stringify(value)
      if (json !== undefined) fields.set(name, json)
    }
    return new ContextJson(fields, items)
  }

  /** JSON of fields and items that other contexts may repeat. */
  get shared(): readonly string[] {
    return [...this.#fields.values(), ...this.#items].filter((json) => json.length >= SHARED)
  }

  /** Replaces the value of a field. `items` as in `of`. */
  with(name: string, json: string, items: readonly string[] = []): ContextJson {
    return new ContextJson(new Map(this.#fields).set(name, json), [...this.#items, ...items])
  }

  /** `text` without the large fields, whose names and JSON follow in `late`. */
  get parts(): { text: string; late: readonly string[] } {
    const late: string[] = []
    const early = new Map<string, string>()
    for (const [name, json] of this.#fields) {
      const isLate = json.length >= LARGE && late.length < MOST_LATE * 2
      if (isLate) late.push(name, json)
      early.set(name, isLate ? '0' : json)
    }
    return late.length === 0 ? { text: this.text, late } : { text: textOf(early), late }
  }
}

const textOf = (fields: ReadonlyMap<string, string>): string =>
  `{${Array.from(fields, ([name, json]) => `${JSON.stringify(name)}:${json}`).join()}}`
