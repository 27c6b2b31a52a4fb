import { deflateRawSync, inflateRawSync } from 'node:zlib'

/** Text as a row keeps it: compressed, unless it is short. */
export type Packed = string | ArrayBuffer

const SHORT = 1000

/** Entries repeat names and ids, so that a fifth to a twentieth remains. */
export function pack(text: string): Packed {
  if (text.length < SHORT) return text
  const { buffer, byteOffset, byteLength } = deflateRawSync(text, { level: 6 })
  return buffer.slice(byteOffset, byteOffset + byteLength)
}

export const unpack = (packed: Packed): string => (typeof packed === 'string' ? packed : inflateRawSync(packed).toString())
