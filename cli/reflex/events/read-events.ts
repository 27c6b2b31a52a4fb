import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { CliError, messageOf } from '../../lib/cli-error.ts'
import { unreadable } from '../values.ts'

export type SentEvent = Record<string, unknown>

/** `-` is standard input, whose reading ends when the signal aborts. */
export async function* readFiles(paths: readonly string[], signal: AbortSignal): AsyncGenerator<SentEvent> {
  for (const path of paths) {
    if (path === '-') yield* readEvents(process.stdin, 'standard input', signal)
    else {
      const stream = createReadStream(path)
      yield* readEvents(stream, path)
      stream.destroy()
    }
  }
}

/**
 * Events in a text: one JSON object a line, one JSON object, or an array of them. Lines are read as
 * they come.
 */
export async function* readEvents(stream: Readable, name: string, signal?: AbortSignal): AsyncGenerator<SentEvent> {
  let line = 0
  /** The lines of one JSON text; null as long as each line is an event. */
  let document: string[] | null = null
  let found = 0
  for await (const text of linesOf(stream, name, signal)) {
    line += 1
    // A byte order mark is not JSON.
    const plain = line === 1 ? text.replace(/^\ufeff/, '') : text
    if (plain.trim() === '' && document === null) continue
    if (document === null && found === 0 && isDocument(plain)) document = []
    if (document === null) {
      yield eventOf(parsed(plain, `${name}, line ${line}`), `${name}, line ${line}`)
      found += 1
    } else document.push(plain)
  }
  if (document === null) return
  const value = parsed(document.join('\n'), name)
  const events = Array.isArray(value) ? value : [value]
  for (const [index, event] of events.entries()) yield eventOf(event, `${name}, event ${index}`)
}

/** True if a first line is the beginning of one JSON text over several lines. */
function isDocument(line: string): boolean {
  if (line.trimStart().startsWith('[')) return true
  try {
    JSON.parse(line)
    return false
  } catch {
    return /^\s*\{\s*(?:"[^"]*"\s*:?.*)?$/.test(line) && !line.trimEnd().endsWith('}')
  }
}

function parsed(text: string, place: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new CliError(`${place} is not JSON: ${messageOf(error)}`, 'Events are JSON objects: one a line, or one array.', error)
  }
}

function eventOf(value: unknown, place: string): SentEvent {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as SentEvent
  throw new CliError(`${place} is not an event: an event is a JSON object.`)
}

async function* linesOf(stream: Readable, name: string, signal?: AbortSignal): AsyncGenerator<string> {
  try {
    yield* createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY, ...(signal && { signal }) })
  } catch (error) {
    throw unreadable(name, error)
  }
}
