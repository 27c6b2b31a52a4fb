import { createHash } from 'node:crypto'
import { API_KEY } from '../../base/secrets.ts'
import { randomHex } from '../../core/event.ts'
import { toBase64Url } from './base64url.ts'

const ID_BYTES = 8
const SECRET_BYTES = 32
const WHOLE_KEY = new RegExp(`^${API_KEY}$`)

/** A new key. `key` is shown once; only `hash` is stored. */
export function createKey(): { id: string; key: string; hash: string } {
  const id = randomHex(ID_BYTES)
  const key = `rfx_${id}_${toBase64Url(crypto.getRandomValues(new Uint8Array(SECRET_BYTES)))}`
  return { id, key, hash: hashKey(key) }
}

export function parseKey(text: string): { id: string; secret: string } | null {
  const [, id, secret] = WHOLE_KEY.exec(text) ?? []
  return id !== undefined && secret !== undefined ? { id, secret } : null
}

/** SHA-256 of the whole key, in hex. Its 256 random bits make a slow hash needless. */
export const hashKey = (key: string): string => createHash('sha256').update(key).digest('hex')

/** Compares two hashes in a time that does not tell where they differ. */
export function sameHash(left: string, right: string): boolean {
  const a = new TextEncoder().encode(left)
  const b = new TextEncoder().encode(right)
  if (a.byteLength !== b.byteLength) return false
  // Node, where the unit tests run, has no `timingSafeEqual` there.
  return typeof crypto.subtle.timingSafeEqual === 'function' ? crypto.subtle.timingSafeEqual(a, b) : sameBytes(a, b)
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  let difference = 0
  for (const [index, byte] of a.entries()) difference |= byte ^ (b[index] ?? 0)
  return difference === 0
}
