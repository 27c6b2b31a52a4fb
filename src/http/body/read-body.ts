import { limits } from '../../base/limits.ts'
import { JsonShape } from '../../base/json-shape.ts'
import { invalid, refusal } from '../problems/refusals.ts'

/** Bytes of an oversized body that are drained before the sender is cut off: Cloudflare's limit. */
const MOST_DRAINED_BYTES = 100 * limits.body_bytes

type Reading = { most: number; advice: string; is_gzip: boolean; shape?: JsonShape }
const standard: Reading = { most: limits.body_bytes, advice: 'Send the events in several requests.', is_gzip: false }

/** A file may be compressed: the limit holds for its content. */
export const readFile = (request: Request): Promise<string> =>
  readBody(request, {
    most: limits.file_bytes,
    advice: 'Replay a larger trace where it was recorded.',
    is_gzip: request.headers.get('Content-Encoding')?.toLowerCase() === 'gzip',
    shape: new JsonShape(),
  })

export async function readBody(request: Request, reading: Reading = standard): Promise<string> {
  if (Number(request.headers.get('Content-Length')) > reading.most) throw tooLarge(reading)
  const body = reading.is_gzip ? request.body?.pipeThrough(new DecompressionStream('gzip')) : request.body
  const chunks = body ? await readChunks(body, reading) : []
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(join(chunks))
  } catch {
    throw refusal('invalid-utf8', 'The body is not valid UTF-8. Send it uncompressed and in UTF-8.')
  }
}

async function readChunks(body: ReadableStream<Uint8Array>, reading: Reading): Promise<Uint8Array[]> {
  const reader = body.getReader()
  const chunks: Uint8Array[] = []
  let bytes = 0
  for (;;) {
    const { done, value } = await reader.read().catch(cutShort)
    if (done) return chunks
    bytes += value.byteLength
    if (bytes > reading.most) {
      // A little gzip may be much to drain.
      await (reading.is_gzip ? reader.cancel() : drain(reader))
      throw tooLarge(reading)
    }
    const flaw = reading.shape?.add(value) ?? null
    if (flaw !== null) {
      await (reading.is_gzip ? reader.cancel() : drain(reader))
      throw invalid(`The file ${flaw}. ${reading.advice}`)
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

const tooLarge = ({ most, advice }: Reading) => refusal('body-too-large', `A body takes at most ${most} bytes. ${advice}`)
