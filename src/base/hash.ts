import { createHash } from 'node:crypto'
import { canonicalJson } from './json.ts'

/** The digits of a hash that tells values of one scope, or the names in a deployment, apart. */
export const SHORT_HASH = 16

/** SHA-256 in hex, at once, by Node's crypto. */
export const hexHash = (text: string | Uint8Array): string => createHash('sha256').update(text).digest('hex')

/** The first digits of SHA-256 of a text, in hex. Values are stored: they never change. */
export const textHash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, SHORT_HASH)

/**
 * SHA-256 of canonical JSON in hex, or its first digits. As `hashJson`, but at once. Values are
 * stored: they never change.
 */
export const jsonHash = (value: unknown, digits = 64): string =>
  createHash('sha256').update(canonicalJson(value)).digest('hex').slice(0, digits)
