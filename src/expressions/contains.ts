import { spend } from './work.ts'

const TABLE = 256
const PREPARED = 500
const STEP = 4
const CANDIDATE = 50
/** Steps that are charged at once. */
const STRIDE = 4096

/** Horspool's search with counted steps: `String.includes` is quadratic for some texts. */
export function contains(text: string, part: string): boolean {
  const { length } = part
  if (length <= 1) {
    spend(text.length)
    return text.includes(part)
  }
  spend(PREPARED + 2 * length)
  const shifts = shiftsOf(part)
  const last = part.charCodeAt(length - 1)
  let steps = 0
  for (let at = 0; at <= text.length - length;) {
    if (steps++ % STRIDE === 0) spend(STEP * Math.min(STRIDE, text.length - at))
    const code = text.charCodeAt(at + length - 1)
    if (code === last) {
      spend(CANDIDATE + length)
      if (text.startsWith(part, at)) return true
    }
    at += shifts[code % TABLE] ?? 1
  }
  return false
}

/** The distance to a character's next occurrence in the part. Slots keep the shortest one. */
function shiftsOf(part: string): Uint32Array {
  const shifts = new Uint32Array(TABLE).fill(part.length)
  for (let index = 0; index < part.length - 1; index++) shifts[part.charCodeAt(index) % TABLE] = part.length - 1 - index
  return shifts
}
