import { byteLength, fitsBytes } from '../base/byte-length.ts'
import { hashJson, isJsonFields, type Json } from '../base/json.ts'
import { normalName, redactor } from '../traces/redact.ts'

export type Redaction = {
  /**
   * Names of fields, at any depth, whose values the log has as hashes only. Names match whatever
   * their case, `_` and `-`.
   */
  fields?: readonly string[]
  /** Goes into the hashes, so that short values cannot be guessed from them. */
  salt?: string
}

const MOST_LOGGED = 10_000
const SHORTEST = 4
const redactSecrets = redactor()

/**
 * The values of one tool call for the log, without the named fields, and its texts without the
 * values of those fields.
 */
export class ToolLogValues {
  readonly #fields: ReadonlySet<string>
  readonly #salt: string
  readonly #hidden = new Set<string>()

  constructor({ fields = [], salt = '' }: Redaction) {
    this.#fields = new Set(fields.map(normalName))
    this.#salt = salt
  }

  async value(value: unknown): Promise<Json> {
    const json = jsonOf(value)
    if (json === undefined) return '[not JSON]'
    const hashed = this.#fields.size === 0 ? json : await this.#hashed(json)
    return redactSecrets(hashed) as Json
  }

  text(text: string): string {
    let shown = text
    for (const hidden of this.#hidden) shown = shown.replaceAll(hidden, '[redacted]')
    return shown
  }

  async #hashed(value: Json): Promise<Json> {
    if (Array.isArray(value)) return Promise.all(value.map((item) => this.#hashed(item)))
    if (!isJsonFields(value)) return value
    const fields = Object.entries(value).map(async ([name, inner]) => [name, await this.#field(name, inner)] as const)
    return Object.fromEntries(await Promise.all(fields))
  }

  async #field(name: string, value: Json): Promise<Json> {
    if (!this.#fields.has(normalName(name))) return this.#hashed(value)
    this.#hide(value)
    return `sha256:${await hashJson([this.#salt, value])}`
  }

  #hide(value: Json): void {
    if (typeof value === 'string' && value.length >= SHORTEST) this.#hidden.add(value)
    else if (Array.isArray(value)) for (const item of value) this.#hide(item)
    else if (isJsonFields(value)) for (const inner of Object.values(value)) this.#hide(inner)
  }
}

/** The value as it would be sent; a long one is replaced by its size. */
function jsonOf(value: unknown): Json | undefined {
  try {
    const text = JSON.stringify(value ?? null)
    if (!fitsBytes(text, MOST_LOGGED)) return { not_logged: `${byteLength(text)} bytes` }
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}
