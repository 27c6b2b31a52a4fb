import { limits } from './limits.ts'

/**
 * A large object as JSON in texts of limited size, between which others are served. A line of a
 * text is a field with its value, or with a part of its list or object.
 */
export function* jsonLines(value: object): Generator<string> {
  let text = ''
  for (const line of linesOf(value)) {
    text += line
    if (text.length < limits.stream_page_bytes) continue
    yield text
    text = ''
  }
  if (text !== '') yield text
}

function* linesOf(value: object): Generator<string> {
  for (const [name, field] of Object.entries(value) as [string, unknown][]) {
    if (field === undefined) continue
    const key = JSON.stringify(name)
    if (typeof field !== 'object' || field === null) yield `[${key},${JSON.stringify(field)}]\n`
    else if (Array.isArray(field)) for (const items of parted(itemsOf(field))) yield `[${key},[${items}]]\n`
    else for (const fields of parted(fieldsOf(field))) yield `[${key},{${fields}}]\n`
  }
}

/** An item of a list that is JSON of one line already. */
export class JsonText {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

function* itemsOf(list: readonly unknown[]): Generator<string> {
  for (const item of list) yield item instanceof JsonText ? item.text : JSON.stringify(item ?? null)
}

function* fieldsOf(value: object): Generator<string> {
  for (const [name, field] of Object.entries(value) as [string, unknown][])
    if (field !== undefined) yield `${JSON.stringify(name)}:${JSON.stringify(field)}`
}

/** Joins texts to parts of about one size. What has no texts has one empty part. */
function* parted(texts: Iterable<string>): Generator<string> {
  let part = [] as string[]
  let parts = 0
  let size = 0
  for (const text of texts) {
    part.push(text)
    size += text.length
    if (size < limits.stream_page_bytes) continue
    yield part.join(',')
    ;[part, parts, size] = [[], parts + 1, 0]
  }
  if (parts === 0 || part.length > 0) yield part.join(',')
}

/** The lines of a text that comes in chunks, which may be cut anywhere. */
export class LineReader {
  readonly #decoder = new TextDecoder()
  // A line may take many chunks: what was read of it is not searched again.
  #rest: string[] = []

  /** The lines that the chunk ends. */
  read(chunk: Uint8Array): string[] {
    const lines = this.#decoder.decode(chunk, { stream: true }).split('\n')
    const begun = lines.pop() ?? ''
    if (lines.length === 0) {
      this.#rest.push(begun)
      return []
    }
    lines[0] = this.#rest.join('') + lines[0]
    this.#rest = [begun]
    return lines
  }

  /** True while the last line has no end. */
  get isCut(): boolean {
    return this.#rest.some((text) => text !== '')
  }
}

/** The object of such lines, which may be cut anywhere between two chunks. */
export async function readJsonLines(chunks: AsyncIterable<Uint8Array>): Promise<Record<string, unknown>> {
  const lines = new LineReader()
  const read = new Map<string, unknown[]>()
  for await (const chunk of chunks) {
    for (const line of lines.read(chunk)) {
      const [name, value] = JSON.parse(line) as [string, unknown]
      const parts = read.get(name)
      if (parts) parts.push(value)
      else read.set(name, [value])
    }
  }
  if (lines.isCut) throw new Error('A line of JSON was cut off.')
  return Object.fromEntries(Array.from(read, ([name, parts]) => [name, whole(parts)]))
}

function whole(parts: unknown[]): unknown {
  const [first] = parts
  if (typeof first !== 'object' || first === null || parts.length === 1) return first
  if (Array.isArray(first)) return parts.flat()
  return Object.fromEntries(parts.flatMap((part) => Object.entries(part as object)))
}
