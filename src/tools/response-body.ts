import { parseJson } from '../base/check-json.ts'
import { watchedBody } from '../base/watched-body.ts'

const SHOWN = 500

/**
 * Reads a limited body: JSON if the Content-Type says so, else text. Many servers say JSON of a
 * text such as `OK`, too. Throws if a good response breaks off inside of a value: half of one must
 * not pass as a text. An error may have any body.
 */
export async function readResponse(response: Response, max_bytes: number): Promise<unknown> {
  const text = await readText(response, max_bytes)
  const type = response.headers.get('content-type') ?? ''
  if (!/\bjson\b/i.test(type) || text.trim() === '') return text
  const parsed = parseJson(text)
  if (parsed.ok) return parsed.value
  if (!response.ok || !breaksOff(text)) return text
  throw new Error(`the response is not the JSON that its Content-Type says: ${parsed.message}: ${text.slice(0, SHOWN)}`)
}

/** True for a text that begins as JSON and ends inside of a string, an object or a list. */
function breaksOff(text: string): boolean {
  if (!/^\s*["[{]/.test(text)) return false
  let open = 0
  for (const [sign] of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|["[\]{}]/gs)) {
    if (sign === '"') return true
    if (sign === '{' || sign === '[') open += 1
    if (sign === '}' || sign === ']') open -= 1
  }
  return open > 0
}

async function readText(response: Response, max_bytes: number): Promise<string> {
  if (!response.body) return ''
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  // Counted as it comes: a length may be wrong, and nothing larger is to be in memory.
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    bytes += chunk.length
    if (bytes > max_bytes) throw new Error(`the response is larger than ${max_bytes} bytes`)
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}

/** Bytes that one or more bodies may have together, and those that came. */
export type Allowance = { what: string; max_bytes: number; bytes: number }
export const responseOf = (max_bytes: number): Allowance => ({ what: 'the response', max_bytes, bytes: 0 })

/** Fails the body with an error once it exceeds the limit. */
export const limitBody = (response: Response, allowance: Allowance): Response =>
  watchedBody(response, (chunk) => {
    allowance.bytes += chunk.length
    const { what, max_bytes, bytes } = allowance
    if (bytes > max_bytes) throw new Error(`${what} is larger than ${max_bytes} bytes`)
  })
