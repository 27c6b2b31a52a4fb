import { mapJson, namesBeside } from '../base/json.ts'

const DEEPEST = 31
/** Bounds the cache: events choose the names. */
const MOST_NAMES = 5000
const LONGEST_NAME = 64
/** Names match whatever their case, `_` and `-`. */
export const normalName = (name: string): string => name.toLowerCase().replaceAll(/[_-]/g, '')

const secretFields = [
  'password',
  'passwd',
  'secret',
  'token',
  'api_key',
  'apikey',
  'authorization',
  'cookie',
  'private_key',
  'access_token',
  'refresh_token',
  'client_secret',
]

/** Masks a JSON value. Unchanged values are returned as they are. */
type Redact = (value: unknown) => unknown
/** The text that replaces a value. */
export type TextMask = (value: unknown) => string

const PLAIN = '[redacted]'
export const plainMask: TextMask = () => PLAIN

/** A mask of what looks like a secret. A text without one of the marks holds none. */
type Pasted = { marks: RegExp; mask: (text: string) => string }

/** True for the text of any mask. */
export const isMask = (value: unknown): value is string =>
  typeof value === 'string' && (value === PLAIN || /^sha256:[\da-f]{64}$/.test(value))

/** Keeps what is masked already, as in a recording. */
export const maskOnce =
  (mask: TextMask): TextMask =>
  (value) =>
    isMask(value) ? value : mask(value)

/**
 * Masks the usual secret fields and `fields`, also in pairs such as `{key: 'token', value: …}`.
 * Names ignore case, `_` and `-`. `pasted` masks within texts.
 */
export function redactor(fields: Iterable<string> = [], mask: TextMask = plainMask, pasted?: Pasted): Redact {
  const hidden = new Set([...secretFields, ...fields].map(normalName))
  /** Names that are known to hide nothing: most values have no others, and are not mapped. */
  const plain = new Set<string>()
  const hides = (name: string): boolean => {
    if (plain.has(name)) return false
    if (hidden.has(normalName(name))) return true
    if (plain.size >= MOST_NAMES) plain.clear()
    if (name.length <= LONGEST_NAME) plain.add(name)
    return false
  }
  const visit = (value: unknown, name: string | number | null, parent: unknown): unknown => {
    const shown = typeof value === 'string' && pasted?.marks.test(value) ? pasted.mask(value) : value
    if (typeof name !== 'string') return shown
    const { key } = name === 'value' ? (parent as { key?: unknown }) : {}
    return hides(name) || (typeof key === 'string' && hides(key)) ? mask(value) : shown
  }
  return (value) => {
    const names = namesBeside(plain, value, DEEPEST)
    const is_plain = names !== null && !names.some(hides) && !(pasted && holdsPasted(value, pasted))
    return is_plain ? value : mapJson(value, visit, { deepest: DEEPEST })
  }
}

/** True if a text within the value, which JSON may hold, is masked by its form. */
function holdsPasted(value: unknown, pasted: Pasted, depth = 0): boolean {
  if (typeof value === 'string') return pasted.marks.test(value) && pasted.mask(value) !== value
  if (typeof value !== 'object' || value === null || depth > DEEPEST) return false
  for (const name in value) if (holdsPasted((value as Record<string, unknown>)[name], pasted, depth + 1)) return true
  return false
}

/** The texts of a value that its redacted form masks. */
export function maskedTexts(value: unknown, redacted: unknown): string[] {
  if (value === redacted) return []
  if (isMask(redacted)) return typeof value === 'string' ? [value] : typeof value === 'object' && value !== null ? textsIn(value) : []
  if (typeof value !== 'object' || value === null || typeof redacted !== 'object' || redacted === null) return []
  const masked = redacted as Record<string, unknown>
  return Object.entries(value).flatMap(([name, inner]) => maskedTexts(inner, masked[name]))
}

const textsIn = (value: object): string[] =>
  Object.values(value).flatMap((inner: unknown) => {
    if (typeof inner === 'string') return [inner]
    return typeof inner === 'object' && inner !== null ? textsIn(inner) : []
  })
