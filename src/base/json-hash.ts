import { createHash } from 'node:crypto'
import { canonicalJson } from './json.ts'

/** The digits of a hash that tells values of one scope apart. */
export const SHORT_HASH = 16

/**
 * SHA-256 of canonical JSON in hex, or its first digits. As `hashJson`, but at once, by Node's
 * crypto. Values are stored: they never change.
 */
export const jsonHash = (value: unknown, digits = 64): string =>
  createHash('sha256').update(canonicalJson(value)).digest('hex').slice(0, digits)
