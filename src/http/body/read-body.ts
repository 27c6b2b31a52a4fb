import { limits } from '../../base/limits.ts'
import { refusal } from '../problems/refusals.ts'

/** Bytes of an oversized body that are drained before the sender is cut off: Cloudflare's limit. */
const MOST_DRAINED_BYTES = 100 * limits.body_bytes

export async function readBody(request: Request): Promise<string> {
  if (Number(request.headers.get('Content-Length')) > limits.body_bytes) throw tooLarge()
  const chunks = request.body ? await readChunks(request.body) : []
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(join(chunks))
  } catch {
    throw refusal('invalid-utf8', 'The body is not valid UTF-8. Send it uncompressed and in UTF-8.')
  }
}

async function readChunks(body: ReadableStream<Uint8Array>): Promise<Uint8Array[]> {
  const reader = body.getReader()
  const chunks: Uint8Array[] = []
  let bytes = 0
  for (;;) {
    const { done, value } = await reader.read().catch(cutShort)
    if (done) return chunks
    bytes += value.byteLength
    if (bytes > limits.body_bytes) {
      await drain(reader)
      throw tooLarge()
    }
    chunks.push(value)
  }
}

/** Drains the body, because locally a response to a partly read one breaks the next request. */
async function drain(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  let left = MOST_DRAINED_BYTES
  while (left > 0) {
    const { done, value } = await reader.read().catch(cutShort)
    if (done) return
    left -= value.byteLength
  }
  // Not awaited: a sender that keeps sending must not delay the response.
  void reader.cancel().catch(() => undefined)
}

function join(chunks: Uint8Array[]): Uint8Array {
  const [first] = chunks
  if (first !== undefined && chunks.length === 1) return first
  const whole = new Uint8Array(chunks.reduce((sum, { byteLength }) => sum + byteLength, 0))
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.byteLength
  }
  return whole
}

function cutShort(): never {
  throw refusal('body-cut-short', 'The body could not be read to its end.')
}

const tooLarge = () => refusal('body-too-large', `A body takes at most ${limits.body_bytes} bytes. Send the events in several requests.`)
