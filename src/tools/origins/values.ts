import { isJsonFields, jsonValue } from '../../base/json.ts'
import { isMask } from '../../traces/redact.ts'

const HIDDEN = /[\p{Default_Ignorable_Code_Point}\p{Cc}]/u
const SCHEME = /^(?:https?:\/\/|mailto:|tel:)/
const NUMBER = /^-?(?:0|[1-9]\d{0,14}|[1-9]\d{0,2}(?:,\d{3})+)(?:\.\d+)?$/
const PHONE = /^(?=[+(0])[+(]?\d[\d ()-]{6,}$/
/** Groups of letters and digits, as in an IBAN. */
const GROUPED = /^[a-z]{2}\d{2}(?:[ -]?[a-z0-9]){8,30}$/

/** A day as `2026-01-05`, `2026/1/5`, `20260105` or `5.1.2026`. `5/1/2026` may be two days. */
const DAY = /^(?:(\d{4})([-/.]?)(\d{1,2})\2(\d{1,2})|(\d{1,2})\.(\d{1,2})\.(\d{4}))$/

/** The usual form of a day; null for other texts. */
function dayOf(text: string): string | null {
  const [, year, between, month, day, last_day, last_month, last_year] = DAY.exec(text) ?? []
  if (year !== undefined && between === '' && text.length !== 8) return null
  const [y, m, d] = [year ?? last_year, month ?? last_month, day ?? last_day].map(Number) as [number, number, number]
  return y >= 1900 && y < 2200 && m >= 1 && m <= 12 && d >= 1 && d <= 31
    ? [y, m, d].map((part) => String(part).padStart(2, '0')).join('-')
    : null
}

/**
 * The form in which values are compared: one for the usual spellings of an address, a number or a
 * name. A text with invisible or compatibility characters equals only itself: its look deceives.
 */
export function formOf(value: string | number): string {
  const given = decoded(String(value).trim())
  const plain = given.normalize('NFC')
  if (HIDDEN.test(plain) || plain.normalize('NFKC') !== plain) return `=${plain}`
  const text = plain.toLowerCase().replaceAll(/\s+/g, ' ').replace(SCHEME, '').replace(/\/$/, '')
  const day = dayOf(text)
  if (day !== null) return day
  if (NUMBER.test(text)) return String(Number(text.replaceAll(',', '')))
  if (GROUPED.test(text) || PHONE.test(text)) return text.replaceAll(/[ ()-]/g, '')
  return text.replace(/^[#@](?=\p{L})/u, '')
}

function decoded(text: string): string {
  if (!/%[\da-f]{2}/i.test(text)) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const BETWEEN = /[\s"'`<>()[\]{},;|“”‘’«»—–。、，：；！？（）「」『』]+/u
/** Letters of scripts that put no space between a word and an address. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]+/u
/** The signs around a word. A run of signs is tried once, so that the time is linear. */
const AROUND = /^[.:;!?…*_~]+|(?<![.:;!?…*_~])[.:;!?…*_~]+$/gu

const bareOf = (word: string): string => word.replaceAll(AROUND, '')

/** The words of a text, each in its form. */
const wordsOf = (text: string): string[] =>
  text
    .split(BETWEEN)
    .map(bareOf)
    .filter((word) => word !== '')
    .map(formOf)

/** The pieces of a word between letters of a script without spaces, such as an address. */
const piecesOf = (word: string): string[] => (UNSPACED.test(word) ? word.split(UNSPACED).filter((piece) => piece !== '') : [])

/** The word before a sentence that begins without a space, as in `example.com.They`. */
const endsIn = (text: string): string[] =>
  text
    .split(BETWEEN)
    .flatMap((word) => /^(.*[\p{L}\p{N}])[.!?]\p{Lu}\p{Ll}*$/u.exec(word)?.[1] ?? [])
    .map(formOf)

const MAIL = /(?:mailto|tel):.+/iu
const WWW = /(?<![\p{L}\p{N}.-])www\..+/iu
/** Endings of hosts that programs make a link of without a scheme. None is one of usual files. */
const ENDINGS = 'com|net|org|info|biz|io|co|app|dev|ai|me|xyz|site|online|shop|top|link|click|page|cloud'
const HOST = new RegExp(String.raw`^(?:[\p{L}\p{N}-]+\.)+(?:(?:${ENDINGS})(?::\d+)?(?:[/?#].*)?|\p{L}{2,}(?::\d+)?[/?#].*)$`, 'iu')

function schemed(word: string): string | null {
  const colon = word.indexOf('://')
  let from = colon
  while (from > 0 && /[a-z\d+.-]/i.test(word.charAt(from - 1))) from -= 1
  return colon > from ? word.slice(from) : null
}

/** The links in a text, as programs find them that make a text clickable. */
export function linksIn(text: string): string[] {
  const found = [text, text.normalize('NFKC').replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '')].flatMap((one) =>
    one.split(BETWEEN).flatMap((word) => {
      const bare = bareOf(word)
      return schemed(bare) ?? MAIL.exec(bare)?.[0] ?? WWW.exec(bare)?.[0] ?? (HOST.test(bare) ? bare : [])
    }),
  )
  return [...new Set(found)]
}

/** A value as texts are asked for it. It is made once for many texts. */
type Wanted = { form: string; words: readonly string[]; groups: RegExp | null }

export function wantedOf(value: string | number): Wanted {
  const form = formOf(value)
  return { form, words: wordsOf(String(value)), groups: isGrouped(form) ? groupsOf(form) : null }
}

/** A text that is asked for whole words, such as a name, an address or a grouped number. */
export class WholeWords {
  readonly #words: readonly string[]
  readonly #known: ReadonlySet<string>
  readonly #digits: string

  constructor(text: string) {
    this.#words = wordsOf(text)
    this.#known = new Set([...this.#words, ...this.#words.flatMap(piecesOf), ...endsIn(text)])
    this.#digits = /\d/.test(text) ? text.normalize('NFC').toLowerCase() : ''
  }

  /** True if the value stands in the text, and is not a part of a longer word. */
  has(value: string | number | Wanted): boolean {
    const { form, words, groups } = typeof value === 'object' ? value : wantedOf(value)
    if (form === '') return false
    if (this.#known.has(form)) return true
    if (groups?.test(this.#digits)) return true
    return words.length > 1 && this.#words.some((_, at) => words.every((word, index) => this.#words[at + index] === word))
  }
}

/** Long numbers and accounts, which people write in groups. */
const isGrouped = (form: string): boolean => /^\+?[a-z0-9]{10,40}$/.test(form) && (form.match(/\d/g)?.length ?? 0) >= 8

const groupsOf = (form: string): RegExp =>
  new RegExp(
    String.raw`(?<![\p{L}\p{N}+])${form
      .replace('+', String.raw`\+`)
      .split(/(?<!\\)(?!^)/)
      .join('[ ()-]{0,2}')}(?![\p{L}\p{N}])`,
    'u',
  )

/** A text or a number within a value. `name`: the nearest field that it stands in. */
export type Field = { path: string; name: string; value: string | number }

const DEEPEST = 12

/** An output of a tool may be JSON as a text at these paths: as a whole, and in texts of MCP. */
const AS_TEXT = new Set(['', 'content.text'])

type Within = { path?: string; name?: string; depth?: number; as_text?: ReadonlySet<string> | undefined }

/** The paths at which texts are read as fields, if a text is no more than a text. */
export const NO_TEXT: ReadonlySet<string> = new Set()

/** The texts and numbers of a value. JSON in a text at the paths `as_text` is read as fields. */
export function* fieldsIn(value: unknown, { path = '', name = '', depth = 0, as_text = AS_TEXT }: Within = {}): Generator<Field> {
  const within = (inner: unknown, at: string, called: string) => fieldsIn(inner, { path: at, name: called, depth: depth + 1, as_text })
  if (typeof value === 'number') yield { path, name, value }
  else if (typeof value === 'string') {
    const json = as_text.has(path) && /^\s*[[{]/.test(value) ? jsonValue(value) : undefined
    if (typeof json === 'object' && json !== null && depth < DEEPEST) yield* within(json, path, '')
    else yield { path, name, value }
  } else if (depth >= DEEPEST) return
  else if (Array.isArray(value)) for (const item of value) yield* within(item, path, name)
  else if (isJsonFields(value))
    for (const [key, inner] of Object.entries(value)) yield* within(inner, path === '' ? key : `${path}.${key}`, key)
}

/** Fields by these names hold what people wrote in words: as a whole, too, they direct nothing. */
const FREE_TEXT = new Set(
  (
    'body text content message messages subject title description comment comments note notes summary snippet ' +
    'html markdown caption bio about review reply quote transcript page'
  ).split(' '),
)
export const isFreeText = (name: string): boolean => FREE_TEXT.has(name.toLowerCase())

/** True for a field that its tool declares to hold what strangers write. */
export const isUntrustedAt = (untrusted: Untrusted, path: string): boolean =>
  untrusted === true || (untrusted !== false && untrusted.some((one) => path === one || path.startsWith(`${one}.`)))

/** A longer value is no address and no name. */
const LONGEST = 256
/** Bytes of an entry of the map beside its text, about. */
const BESIDE = 64

/** Shorter texts stand in inputs and outputs by chance. */
const SHORTEST_WRITTEN = 4
const MOST_WRITTEN = 2000

/** `as_text`: the paths at which a text is read as JSON. */
type KnownFrom = {
  tool: string
  input?: unknown
  untrusted?: Untrusted | undefined
  as_text?: ReadonlySet<string> | undefined
  /** It only reads, so that no later output can have its input. */
  reads?: boolean
}

/** `true`: all of the output. Paths of fields: these, and what stands in them. */
type Untrusted = boolean | readonly string[]

/**
 * Whole values that outputs of tools have given, in the form in which they are compared. It is
 * bounded in bytes: the oldest values are forgotten, and what is forgotten is trusted no more.
 */
export class KnownValues {
  readonly #places = new Map<string, string>()
  readonly #most: number
  #bytes = 0
  /** Texts of inputs that no output gave before. A tool that returns them later echoes them. */
  readonly #written = new Set<string>()

  constructor(most_bytes = 1_000_000) {
    this.#most = most_bytes
  }

  /** A value that the input has already is an echo, and no more known than before. */
  add(output: unknown, { tool, input, untrusted = false, as_text, reads = false }: KnownFrom): void {
    const inputs = [...fieldsIn(input)]
    const given = new WholeWords(inputs.map(({ value }) => String(value)).join('\n'))
    if (!reads) for (const { value } of inputs) if (typeof value === 'string') this.#write(formOf(value))
    if (untrusted === true) return
    for (const { path, name, value } of fieldsIn(output, { as_text })) {
      // A text alone is a page or a message, whoever wrote it.
      if (typeof value === 'string' && value === output) continue
      if (isFreeText(name) || isUntrustedAt(untrusted, path)) continue
      if ((typeof value === 'string' && value.length > LONGEST) || isMask(value) || given.has(value)) continue
      if (this.#written.has(formOf(value))) continue
      this.#put(formOf(value), path === '' ? tool : `${tool}.${path}`)
    }
  }

  /** The tool and the path of a field with this value. */
  find(value: string | number): string | undefined {
    return this.#places.get(formOf(value))
  }

  #write(form: string): void {
    if (form.length < SHORTEST_WRITTEN || form.length > LONGEST || /^[\d.-]*$/.test(form) || this.#places.has(form)) return
    this.#written.add(form)
    const [oldest] = this.#written
    if (this.#written.size > MOST_WRITTEN && oldest !== undefined) this.#written.delete(oldest)
  }

  #put(form: string, place: string): void {
    if (form === '') return
    const known = this.#places.get(form)
    if (known !== undefined) {
      this.#places.delete(form)
      this.#places.set(form, known)
      return
    }
    this.#places.set(form, place)
    this.#bytes += sizeOf(form, place)
    for (const [oldest, of] of this.#places) {
      if (this.#bytes <= this.#most) break
      this.#places.delete(oldest)
      this.#bytes -= sizeOf(oldest, of)
    }
  }
}

/** Texts take up to two bytes a character. */
const sizeOf = (form: string, place: string): number => 2 * (form.length + place.length) + BESIDE
