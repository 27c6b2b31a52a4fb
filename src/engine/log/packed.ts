import { Buffer } from 'node:buffer'
import { deflateRawSync, inflateRawSync } from 'node:zlib'

/** Text as a row keeps it: compressed, unless it is short. */
export type PackedText = string | ArrayBuffer

const SHORT = 1000

/** Entries repeat names and ids. A higher level saves a tenth, and takes twice the time. */
export function pack(text: string): PackedText {
  if (text.length < SHORT) return text
  const { buffer, byteOffset, byteLength } = deflateRawSync(text, { level: 3 })
  return buffer.slice(byteOffset, byteOffset + byteLength)
}

export const samePacked = (one: PackedText, other: PackedText): boolean =>
  typeof one === 'string' || typeof other === 'string' ? one === other : Buffer.from(one).equals(Buffer.from(other))

export const unpack = (packed: PackedText): string => (typeof packed === 'string' ? packed : inflateRawSync(packed).toString())
