/**
 * Builds an idempotency key from the literal texts of a template and the values between them.
 * Different lists of values never give the same key, since a hostile value must not make an effect
 * count as done. A single value is inserted as it is. Several values are encoded so that their ends
 * can be recognised: `%` and the first characters of the texts between them are percent-encoded,
 * and `:` separates adjacent values. There is one more literal than there are values.
 */
export function keyText(literals: readonly string[], values: readonly string[]): string {
  const [first = '', ...following] = literals
  const parted = following.map((literal, index) => (index === values.length - 1 ? literal : parting(literal)))
  const reserved = new Set(['%', ...parted.slice(0, -1).map((literal) => literal.charAt(0))])
  const written = values.length < 2 ? values : values.map((value) => encoded(value, reserved))
  return first + written.map((value, index) => value + (parted[index] ?? '')).join('')
}

/** A text that begins with `%` would look like the encoding of a value's character. */
const parting = (literal: string): string => (literal === '' || literal.startsWith('%') ? `:${literal}` : literal)

/** By UTF-16 code units, so that no half of a surrogate pair is lost. */
const encoded = (value: string, reserved: ReadonlySet<string>): string =>
  Array.from({ length: value.length }, (_, index) => value.charAt(index))
    .map((unit) => (reserved.has(unit) ? percent(unit.charCodeAt(0)) : unit))
    .join('')

const percent = (code: number): string => (code < 256 ? `%${hex(code, 2)}` : `%u${hex(code, 4)}`)
const hex = (code: number, digits: number): string => code.toString(16).toUpperCase().padStart(digits, '0')
