import { limits } from '../base/limits.ts'

/**
 * A program may end with a line of weights: bytes for its constant `weights`, in base64. They are a
 * part of its text, so that whatever names, copies, seals, keeps or deletes the program does the
 * same with them.
 */
const MARK = '\n// weights: '
const BASE64 = /^[A-Za-z0-9+/]{2,}={0,2}$/

/** `weights`: characters with the codes 1 to 255, one for each byte; null: the program has none. */
type ProgramParts = { ok: true; code: string; weights: string | null } | { ok: false; code: string; error: string }

export function partsOf(program: string): ProgramParts {
  const { code, base64 } = split(program)
  if (base64 === null) return { ok: true, code, weights: null }
  const weights = BASE64.test(base64) && base64.length % 4 === 0 ? atob(base64) : null
  if (weights === null || weights.includes('\0'))
    return { ok: false, code, error: 'the line of weights is damaged: it is not base64 of bytes from 1 to 255' }
  if (weights.length <= limits.weights_bytes) return { ok: true, code, weights }
  return { ok: false, code, error: `the weights are ${weights.length} bytes long; ${limits.weights_bytes} are allowed` }
}

/** The program with weights, which are characters with the codes 1 to 255. */
export const withWeights = (code: string, weights: string): string => `${code.trimEnd()}${MARK}${btoa(weights)}\n`

/** The program as people and models read it: the size of its weights in their place. */
export function readableProgram(program: string): string {
  const { code, base64 } = split(program)
  return base64 === null ? program : `${code}${MARK}${Math.floor((base64.length * 3) / 4)} bytes\n`
}

function split(program: string): { code: string; base64: string | null } {
  const at = program.lastIndexOf(MARK)
  if (at < 0) return { code: program, base64: null }
  const line = program.slice(at + MARK.length).trimEnd()
  return line.includes('\n') ? { code: program, base64: null } : { code: program.slice(0, at), base64: line }
}
