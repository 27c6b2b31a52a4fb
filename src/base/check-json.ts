import { z } from 'zod'
import type { Result } from './result.ts'

/** A validation error. `index` is the position in a batch; `path` is empty for the whole input. */
export type FieldError = { index?: number; path: string; message: string }

export function fieldError(path: PropertyKey[], message: string, index?: number): FieldError {
  return { ...(index === undefined ? {} : { index }), path: z.core.toDotPath(path), message }
}

const DEEPEST = 64
const LONGEST_NUMBER = 25
const LONGEST_WORD = 5
const LONGEST_ESCAPE = 6

export type Fields = Record<string, unknown>
type Flaw = { path: PropertyKey[]; message: string }

/** Rejects JSON that schemas or the storage would reject or alter. `max_bytes` bounds its size. */
export function checkJson(value: unknown): Result<{ max_bytes: number }, { error: FieldError }> {
  const found = weigh(value, 1)
  return typeof found === 'number' ? { ok: true, max_bytes: found } : { ok: false, error: fieldError(found.path, found.message) }
}

export const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value)

function weigh(value: unknown, depth: number): number | Flaw {
  if (typeof value === 'string') {
    return value.isWellFormed() ? value.length * LONGEST_ESCAPE + 2 : flaw('contains a lone surrogate')
  }
  if (typeof value === 'number') return Number.isFinite(value) ? LONGEST_NUMBER : flaw('is a number beyond the range of a double')
  if (typeof value === 'boolean' || value === null) return LONGEST_WORD
  if (typeof value === 'object' && depth > DEEPEST) return flaw(`is nested deeper than ${DEEPEST} levels`)
  if (Array.isArray(value)) return weighItems(value, depth)
  return isFields(value) ? weighFields(value, depth) : flaw('is not JSON')
}

function weighItems(items: unknown[], depth: number): number | Flaw {
  let sum = 2
  for (const [index, item] of items.entries()) {
    const found = weigh(item, depth + 1)
    if (typeof found !== 'number') return within(index, found)
    sum += found + 1
  }
  return sum
}

function weighFields(fields: Fields, depth: number): number | Flaw {
  let sum = 2
  for (const name of Object.keys(fields)) {
    if (name === '__proto__') return within(name, flaw('is a reserved name'))
    const found = name.isWellFormed() ? weigh(fields[name], depth + 1) : flaw('has a name with a lone surrogate')
    if (typeof found !== 'number') return within(name, found)
    sum += found + name.length * LONGEST_ESCAPE + 4
  }
  return sum
}

const flaw = (message: string): Flaw => ({ path: [], message })
const within = (key: PropertyKey, inner: Flaw): Flaw => ({ path: [key, ...inner.path], message: inner.message })
