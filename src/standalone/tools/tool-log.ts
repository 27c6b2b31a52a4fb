import { byteLength, fitsBytes, hashJson, jsonText, mapJson, type Json } from '../../base/json.ts'
import { limits } from '../../base/limits.ts'
import { normalName, redactor } from '../../traces/redact.ts'

export type Redaction = {
  /** Fields, at any depth, that are logged as hashes. Names ignore case, `_` and `-`. */
  fields?: readonly string[]
  /** Goes into the hashes, so that short values cannot be guessed from them. */
  salt?: string
}

const SHORTEST = 4
const redactSecrets = redactor()

/** The values of one tool call for the log. The values of named fields are hashed or hidden. */
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
    const isHidden = (name: unknown): boolean => typeof name === 'string' && this.#fields.has(normalName(name))
    const found: unknown[] = []
    mapJson(value, (inner, name) => (isHidden(name) ? (found.push(inner), null) : inner))
    for (const inner of found) mapJson(inner, (text) => this.#hide(text))
    const hashes = await Promise.all(found.map((inner) => hashJson([this.#salt, inner])))
    return mapJson(value, (inner, name) => (isHidden(name) ? `sha256:${hashes.shift()}` : inner)) as Json
  }

  #hide(value: unknown): unknown {
    if (typeof value === 'string' && value.length >= SHORTEST) this.#hidden.add(value)
    return value
  }
}

/** The value as it would be sent; a long one is replaced by its size. */
function jsonOf(value: unknown): Json | undefined {
  const text = jsonText(value)
  if (text === null) return undefined
  return fitsBytes(text, limits.log_entry_bytes / 4) ? (JSON.parse(text) as Json) : { not_logged: `${byteLength(text)} bytes` }
}
