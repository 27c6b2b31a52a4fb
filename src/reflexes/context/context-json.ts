import { fitsBytes } from '../../base/json.ts'
import type { ReflexContext } from '../reflex-context.ts'

const LARGE = 256
/** A reference to a shorter text saves nothing. */
const SHARED = 32
const MOST_LATE = 24

/** JSON of a value, or of each item of a list. */
type KnownJson = string | readonly string[]
/** `items`: JSON of a list's items, which other contexts may repeat. */
type Field = { json: string; items: readonly string[] | null }

/** A context as JSON, field by field: written once for the sandbox, the hash and the log. */
export class ContextJson {
  readonly #fields: ReadonlyMap<string, Field>
  #text: string | null = null

  private constructor(fields: ReadonlyMap<string, Field>) {
    this.#fields = fields
  }

  get text(): string {
    return (this.#text ??= textOf(Array.from(this.#fields, ([name, { json }]) => [name, json])))
  }

  /** True if the whole context takes at most this many bytes. */
  fits(bytes: number): boolean {
    return fitsBytes(this.text, bytes)
  }

  /** `known`: fields whose JSON the caller has. A value that is not an object has no fields. */
  static of(context: unknown, known: Readonly<Record<string, KnownJson>> = {}): ContextJson {
    if (typeof context !== 'object' || context === null || Array.isArray(context)) {
      const json = new ContextJson(new Map())
      json.#text = JSON.stringify(context) ?? 'null'
      return json
    }
    const fields = new Map<string, Field>()
    for (const [name, value] of Object.entries(context)) {
      const json = Object.hasOwn(known, name) ? known[name] : JSON.stringify(value)
      if (json !== undefined) fields.set(name, fieldOf(json))
    }
    return new ContextJson(fields)
  }

  /** Replaces the value of a field. */
  with(name: string, json: KnownJson): ContextJson {
    return new ContextJson(new Map(this.#fields).set(name, fieldOf(json)))
  }

  /** The text in pieces. Other contexts may repeat each second one, which is long. */
  get pieces(): readonly string[] {
    if (this.#fields.size === 0) return [this.text]
    const pieces: string[] = []
    let before = '{'
    for (const [place, [name, { json, items }]] of [...this.#fields].entries()) {
      before += `${place > 0 ? ',' : ''}${JSON.stringify(name)}:`
      for (const [index, text] of (items ?? [json]).entries()) {
        if (items) before += index > 0 ? ',' : '['
        if (text.length < SHARED) before += text
        else {
          pieces.push(before, text)
          before = ''
        }
      }
      if (items) before += items.length > 0 ? ']' : '[]'
    }
    return [...pieces, `${before}}`]
  }

  /** `text` without the large fields, whose names and JSON follow in `late`. */
  get parts(): { text: string; late: readonly string[] } {
    const late: string[] = []
    const early: [string, string][] = []
    for (const [name, { json }] of this.#fields) {
      const isLate = json.length >= LARGE && late.length < MOST_LATE * 2
      if (isLate) late.push(name, json)
      early.push([name, isLate ? '0' : json])
    }
    return late.length === 0 ? { text: this.text, late } : { text: textOf(early), late }
  }
}

const fieldOf = (json: KnownJson): Field => (typeof json === 'string' ? { json, items: null } : { json: `[${json.join()}]`, items: json })

const textOf = (fields: readonly (readonly [name: string, json: string])[]): string =>
  `{${fields.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join()}}`

/** `fits` is false if the context is too large for the sandbox. */
export type ShownContext = { context: ReflexContext; json: ContextJson; hash: string; fits: boolean }
