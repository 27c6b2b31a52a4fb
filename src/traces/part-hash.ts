import { createHash } from 'node:crypto'

/** Half of SHA-256: entries name parts often. */
const HASH_DIGITS = 32

/** The name of a stored part, by its canonical JSON without secrets. */
export const partHash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, HASH_DIGITS)
