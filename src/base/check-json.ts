import { z } from 'zod'
import type { Result } from './result.ts'

type Parsed = { ok: true; value: unknown } | { ok: false; message: string }

/** JSON.parse with the position of an error, which most engines do not report. */
export function parseJson(text: string): Parsed {
  try {
    return { ok: true, value: JSON.parse(text) }
  } catch {
    const at = errorPosition(text)
    const before = text.slice(0, at)
    const line = before.split('\n').length
    const found = at < text.length ? `unexpected ${JSON.stringify(String.fromCodePoint(text.codePointAt(at) ?? 0))}` : 'unexpected end'
    return { ok: false, message: `malformed JSON at position ${at} (line ${line}, column ${at - before.lastIndexOf('\n')}): ${found}` }
  }
}

const blank = /[ \t\r\n]*/y
const scalar = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y
/** Characters of a JSON string other than `"`, `\` and control characters. */
const plainText = /[ !#-[\]-\u{10ffff}]*/uy
const escape = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y

type Open = ('{' | '[')[]
type Expected = 'value' | 'first_item' | 'key' | 'first_key' | 'colon' | 'next'

/**
 * The place at which `text` stops being valid JSON. Not recursive: deep nesting would overflow the
 * stack.
 */
function errorPosition(text: string): number {
  const open: Open = []
  let expected: Expected = 'value'
  let at = skip(blank, text, 0)
  while (at < text.length) {
    const step: ParserStep = steps[expected](text, at, open)
    if (!step.ok) return step.at
    expected = step.expected
    at = skip(blank, text, step.at)
  }
  return text.length
}

type ParserStep = { ok: true; at: number; expected: Expected } | { ok: false; at: number }

const steps: Record<Expected, (text: string, at: number, open: Open) => ParserStep> = {
  value,
  first_item: (text, at, open) => (text.charAt(at) === ']' ? close(at, open) : value(text, at, open)),
  key: (text, at) => string(text, at, 'colon'),
  first_key: (text, at, open) => (text.charAt(at) === '}' ? close(at, open) : string(text, at, 'colon')),
  colon: (text, at) => (text.charAt(at) === ':' ? { ok: true, at: at + 1, expected: 'value' } : { ok: false, at }),
  next: (text, at, open) => {
    const inside = open.at(-1)
    if (!inside) return { ok: false, at }
    if (text.charAt(at) === ',') return { ok: true, at: at + 1, expected: inside === '{' ? 'key' : 'value' }
    return text.charAt(at) === (inside === '{' ? '}' : ']') ? close(at, open) : { ok: false, at }
  },
}

function value(text: string, at: number, open: Open): ParserStep {
  const character = text.charAt(at)
  if (character === '"') return string(text, at, 'next')
  if (character === '{' || character === '[') {
    open.push(character)
    return { ok: true, at: at + 1, expected: character === '{' ? 'first_key' : 'first_item' }
  }
  const end = skip(scalar, text, at)
  return end > at ? { ok: true, at: end, expected: 'next' } : { ok: false, at }
}

function string(text: string, start: number, expected: Expected): ParserStep {
  if (text.charAt(start) !== '"') return { ok: false, at: start }
  let at = skip(plainText, text, start + 1)
  while (text.charAt(at) === '\\') {
    const end = skip(escape, text, at)
    if (end === at) return { ok: false, at }
    at = skip(plainText, text, end)
  }
  return text.charAt(at) === '"' ? { ok: true, at: at + 1, expected } : { ok: false, at }
}

function close(at: number, open: Open): ParserStep {
  open.pop()
  return { ok: true, at: at + 1, expected: 'next' }
}

function skip(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from
  return pattern.test(text) ? pattern.lastIndex : from
}

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
