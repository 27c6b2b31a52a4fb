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
