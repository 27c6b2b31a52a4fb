import { isTooDeep, jsonText, jsonValue, mapJson } from './json.ts'
import { oncePer } from './once-per.ts'

/** Prefix of secrets for tools. Settings may name no others. */
export const TOOL_SECRET_PREFIX = 'REFLEX_TOOL_'
/** Prefix of secrets that sign outgoing webhooks, and of those that verify incoming ones. */
export const WEBHOOK_SECRET_PREFIX = 'REFLEX_WEBHOOK_'
export const HOOK_SECRET_PREFIX = 'REFLEX_HOOK_'
const OUTSIDE_PREFIXES = [TOOL_SECRET_PREFIX, WEBHOOK_SECRET_PREFIX, HOOK_SECRET_PREFIX]
/** Suffix of the variable that lists the hosts a secret may be sent to. */
export const TOOL_SECRET_HOSTS = '_HOSTS'
/** Suffix of the variable that lists the scopes that may use a secret. */
export const SECRET_SCOPES = '_SCOPES'
/** True for the variable that lists the hosts or the scopes of a secret. */
export const isList = (name: string): boolean => name.endsWith(TOOL_SECRET_HOSTS) || name.endsWith(SECRET_SCOPES)

/** The form of the API's keys, of which a deployment knows the hashes alone: id and secret. */
export const API_KEY = 'rfx_([0-9a-f]{16})_([A-Za-z0-9_-]{43})'
const API_KEYS = new RegExp(API_KEY, 'g')

/** Shorter values occur in other texts by chance. */
export const SHORTEST_SECRET = 8
const HIDDEN = '[secret]'
/** Levels of JSON within JSON that are searched directly: three in a text, one more for `value`. */
const ESCAPES = 4
const SPECIAL = /[$()*+.?[\\\]^{|}/-]/g
/** The headers that the collector of spans gets. */
const HEADERS_NAME = /^OTEL_EXPORTER_OTLP_(?:TRACES_)?HEADERS$/
const SECRET_NAME = /(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$/i

/**
 * Masks secrets by value: whole, by word, percent-encoded, in base64 and within JSON.
 * `traces/redact.ts` masks by field name, `skills/gate/sensitive.ts` by format.
 */
export type SecretHider = {
  /** True if the text, which may be JSON, contains a secret. */
  finds: (text: string) => boolean
  /** Masks in the strings of JSON, or in plain text. */
  text: (text: string) => string
  /** Returns the same value if it contains no secret. Field names are searched, numbers are not. */
  value: <Value>(value: Value) => Value
}

declare const searched: unique symbol
/**
 * A value that was searched for the secrets of the deployment where it entered, and holds none. The
 * mark is for the compiler alone: what is read back from JSON does not have it.
 */
export type Clean<Value> = Value & { readonly [searched]: true }

export const hidesNothing: SecretHider = { finds: () => false, text: (text) => text, value: (value) => value }

export const secretHider = (secrets: readonly string[], shortest = SHORTEST_SECRET): SecretHider =>
  textHider(secretFinder(secrets, shortest, () => HIDDEN))

function textHider({ finds, replace }: Finder): SecretHider {
  if (finds === hidesNothing.finds) return hidesNothing
  const hiddenText = (text: string): string => {
    const json = asJson(text)
    return json === undefined ? replace(text) : JSON.stringify(hider.value(json))
  }
  const hider = hiderOf(finds, (text) => (finds(text) ? hiddenText(text) : text))
  return hider
}

/** Like `secretHider`, but JSON within a text is not written again: its white space stays. */
export function quoteHider(secrets: readonly string[], shortest: number, shown: (secret: string) => string): SecretHider {
  const { finds, replace } = secretFinder(secrets, shortest, shown)
  return finds === hidesNothing.finds ? hidesNothing : hiderOf(finds, (text) => (finds(text) ? replace(text) : text))
}

const hiderOf = (finds: SecretHider['finds'], text: SecretHider['text']): SecretHider => ({
  finds,
  text,
  value: <Value>(value: Value) => {
    // Its JSON is searched at once: few values hold a secret. What is too deep is cut all the same.
    const json = jsonText(value)
    if (json !== null && !finds(json) && !isTooDeep(value)) return value
    return mapJson(value, (inner) => (typeof inner === 'string' ? text(inner) : inner), { name: text }) as Value
  },
})

type Finder = { finds: SecretHider['finds']; replace: SecretHider['text'] }

function secretFinder(secrets: readonly string[], shortest: number, shown: (secret: string) => string): Finder {
  const owners = new Map<string, string>()
  for (const secret of secrets) {
    if (secret.length < shortest) continue
    for (const form of formsOf(secret)) if (!owners.has(form)) owners.set(form, secret)
  }
  if (owners.size === 0) return { finds: hidesNothing.finds, replace: hidesNothing.text }
  const forms = [...owners.keys()]
  // The longest first, so that a secret is masked as a whole before its words.
  const patterns = forms.toSorted((left, right) => right.length - left.length).map((form) => form.replaceAll(SPECIAL, String.raw`\$&`))
  const all = new RegExp(patterns.join('|'), 'g')
  return { finds: findAny(forms), replace: (text: string) => text.replaceAll(all, (form) => shown(owners.get(form) ?? form)) }
}

/** Variables of a deployment that hold secrets: those for tools, and by their names. */
export function deploymentSecrets(env: object): { name: string; value: string }[] {
  return Object.entries(env).flatMap(([name, value]: [string, unknown]) => {
    if (typeof value !== 'string') return []
    if (isSecretVariable(name)) return [{ name, value }]
    const values = HEADERS_NAME.test(name) ? Object.values(pairsOf(value)) : []
    return values.filter(({ length }) => length >= SHORTEST_SECRET).map((one) => ({ name, value: one }))
  })
}

/** Parses `key=value,key2=value2`, whose values are percent-encoded. */
export const pairsOf = (text = ''): Record<string, string> =>
  Object.fromEntries(
    text
      .split(',')
      .filter((pair) => pair.includes('='))
      .map((pair) => {
        const at = pair.indexOf('=')
        return [pair.slice(0, at).trim(), decoded(pair.slice(at + 1).trim())]
      }),
  )

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const isSecretVariable = (name: string): boolean =>
  OUTSIDE_PREFIXES.some((prefix) => name.startsWith(prefix)) ? !isList(name) : SECRET_NAME.test(name)

/** The hider of all secrets of the deployment, created once per isolate. It masks API keys, too. */
export const deploymentHider = oncePer((env: object): SecretHider => {
  const values = deploymentSecrets(env).map(({ value }) => value)
  const { finds, replace } = secretFinder(values, SHORTEST_SECRET, () => HIDDEN)
  return textHider({
    finds: (text) => finds(text) || (text.includes('rfx_') && text.search(API_KEYS) >= 0),
    replace: (text) => replace(text).replaceAll(API_KEYS, HIDDEN),
  })
})

/** Masks in each text of a list, which is the same list if none holds a secret. */
export const hideAll = <Value>(hider: SecretHider, values: readonly Value[]): readonly (Value | string)[] =>
  values.some((value) => typeof value === 'string' && hider.finds(value))
    ? values.map((value) => (typeof value === 'string' ? hider.text(value) : value))
    : values

/** Masks an error in place: handlers rely on its class and fields. */
export function hideInError(error: unknown, hider: SecretHider): void {
  if (!(error instanceof Error)) return
  if (hider.finds(error.message)) error.message = hider.text(error.message)
  if (error.stack !== undefined && hider.finds(error.stack)) error.stack = hider.text(error.stack)
}

function formsOf(secret: string): string[] {
  const words = secret.split(/\s+/).filter((word) => word !== secret && word.length >= SHORTEST_SECRET)
  const texts = [secret, ...words]
  const encoded = texts.filter(({ length }) => length >= SHORTEST_SECRET).flatMap((text) => [...percentForms(text), ...base64Forms(text)])
  return [...texts, ...encoded].flatMap(jsonForms)
}

function percentForms(text: string): string[] {
  const whole = encodeURIComponent(text.toWellFormed())
  const form = new URLSearchParams([['', text.toWellFormed()]]).toString().slice(1)
  return [whole, form, whole.replaceAll(/%../g, (code) => code.toLowerCase())]
}

/** The base64 at each of three offsets, without the characters shared with neighbouring bytes. */
function base64Forms(text: string): string[] {
  const bytes = new TextEncoder().encode(text)
  return [0, 1, 2].flatMap((offset) => {
    const padded = new Uint8Array(offset + bytes.length)
    padded.set(bytes, offset)
    const plain = btoa(String.fromCodePoint(...padded)).replaceAll('=', '')
    const shared = padded.length % 3 === 0 ? plain.length : plain.length - 1
    const own = plain.slice(offset === 0 ? 0 : offset + 1, shared)
    return [own, own.replaceAll('+', '-').replaceAll('/', '_')]
  })
}

/** The text escaped as JSON, and as JSON within JSON, where escaping changes it. */
function jsonForms(text: string): string[] {
  const forms = [text]
  for (let level = 0; level < ESCAPES; level++) forms.push(JSON.stringify(forms.at(-1)).slice(1, -1))
  return forms
}

/** Lists, objects and texts in JSON; undefined for anything else. */
const asJson = (text: string): unknown => (/^\s*[[{"]/.test(text) ? jsonValue(text) : undefined)

const BLOCK = 3
const SLOTS = 65_536

/** Finds any of many texts by Wu and Manber's search, in a time independent of their number. */
export function findAny(patterns: readonly string[]): (text: string) => boolean {
  const shortest = Math.min(...patterns.map(({ length }) => length))
  if (patterns.length === 0) return () => false
  if (shortest < BLOCK + 1) return (text) => patterns.some((pattern) => text.includes(pattern))
  const { shifts, ending } = tablesOf(patterns, shortest)
  return (text) => {
    let at = shortest
    while (at <= text.length) {
      const slot = slotAt(text, at)
      const shift = shifts[slot] ?? 0
      if (shift === 0) {
        const start = at - shortest
        if (ending.get(slot)?.some((pattern) => text.startsWith(pattern, start)) === true) return true
        at += 1
      } else at += shift
    }
    return false
  }
}

/** The shift for each block of characters, and the patterns that end with that block. */
function tablesOf(patterns: readonly string[], shortest: number) {
  const shifts = new Uint8Array(SLOTS).fill(Math.min(255, shortest - BLOCK + 1))
  const ending = new Map<number, string[]>()
  for (const pattern of patterns) {
    for (let end = BLOCK; end <= shortest; end++) {
      const slot = slotAt(pattern, end)
      shifts[slot] = Math.min(shifts[slot] ?? 0, shortest - end)
    }
    const last = slotAt(pattern, shortest)
    ending.set(last, [...(ending.get(last) ?? []), pattern])
  }
  return { shifts, ending }
}

/** The slot of the block that ends before `end`. */
const slotAt = (text: string, end: number): number =>
  (text.charCodeAt(end - 1) ^ (text.charCodeAt(end - 2) << 5) ^ (text.charCodeAt(end - 3) << 10)) & (SLOTS - 1)

/** A kind of credential, by its form. */
type CredentialKind = 'private_key' | 'token' | 'password'

const PRIVATE_KEY = /-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----/
const ASSIGNED =
  /\b(?:password|passwd|pwd|api[_-]?key|secret[_-]?key|client[_-]?secret|access[_-]?token|refresh[_-]?token|auth[_-]?token)["']?\s{0,3}[=:]\s{0,3}["']?/
const ASSIGNMENT = new RegExp(String.raw`${ASSIGNED.source}[^\s"']{4}`, 'i')
const IN_URL = /:\/\/[^\s/:@]{1,128}:[^\s/:@]{1,128}@/
const BEARER = /\bbearer\s{1,3}[\w.~+/-]{16}/i

/** Tokens by the prefixes that their issuers chose. Each pattern matches one whole word. */
const TOKENS: readonly RegExp[] = [
  /(?:AKIA|ASIA)[0-9A-Z]{16}/,
  /gh[opusr]_[A-Za-z0-9]{20,}/,
  /github_pat_\w{20,}/,
  /glpat-[\w-]{16,}/,
  /(?:sk|rk|pk)[-_](?:[\w-]{0,20}[-_])?[A-Za-z0-9]{16,}/,
  /xox[abeoprs]-[\w-]{10,}/,
  /AIza[\w-]{30,}/,
  /npm_[A-Za-z0-9]{30,}/,
  /hf_[A-Za-z0-9]{20,}/,
  /(?:dop|doo)_v1_[0-9a-f]{32,}/,
  /SG\.[\w-]{16,}\.[\w-]{16,}/,
  /ya29\.[\w-]{20,}/,
  /eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/,
].map(({ source }) => new RegExp(`^[*~]*${source}[.!*~…]*$`))
/** A word without what a sentence sets around it. */
const BARE = /[^*~].*[^.!*~…]/
/** The characters between words, as in a class of a pattern. */
const BETWEEN = String.raw`\s"'\x60“”„‘’«»。,;=:()<>[\]{}|&?#@/\\`
const BETWEEN_WORDS = new RegExp(`[${BETWEEN}]+`)

const isToken = (word: string): boolean => word.length >= 16 && TOKENS.some((token) => token.test(word))

/** The kind of credential that stands in the text; null if nothing looks like one. */
export function credentialIn(text: string): CredentialKind | null {
  if (PRIVATE_KEY.test(text)) return 'private_key'
  if (text.split(BETWEEN_WORDS).some(isToken) || BEARER.test(text)) return 'token'
  return ASSIGNMENT.test(text) || IN_URL.test(text) ? 'password' : null
}

/** By the issuers' ranges and Luhn's digit, which one in ten numbers has by chance. */
const ISSUED =
  /^(?:4\d{12}(?:\d{3})?(?:\d{3})?|5[1-5]\d{14}|2[2-7]\d{14}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|6(?:011|5\d\d)\d{12}|35\d{14})$/

export function isCardNumber(digits: string): boolean {
  if (!ISSUED.test(digits)) return false
  let sum = 0
  for (const [index, digit] of Array.from(digits).toReversed().entries()) {
    const doubled = index % 2 === 1 ? Number(digit) * 2 : Number(digit)
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}

/** The groups in which a card shows its number, and a number behind the name of one. */
const CARDS = /(?<![\d-])(?:\d{4}([ -])\d{4}\1\d{4}\1\d{4}|3\d{3}([ -])\d{6}\2\d{5})(?![\d-])/g
const NAMED_CARDS = /(\b(?:card|visa|mastercard|amex|kreditkarte)\b\D{0,20})(\d{13,19})(?!\d)/gi

const withoutCards = (text: string): string =>
  text
    .replaceAll(CARDS, (number) => (isCardNumber(number.replaceAll(/[ -]/g, '')) ? maskOf('card_number') : number))
    .replaceAll(NAMED_CARDS, (whole, before: string, number: string) => (isCardNumber(number) ? before + maskOf('card_number') : whole))

/** The texts that a credential has by all of its forms. Most texts have none of them. */
const MARKS =
  /PRIVATE KEY|AKIA|ASIA|gh[opusr]_|github_pat_|glpat-|[srp]k[-_]|xox[a-z]-|AIza|npm_|hf_|do[op]_v1_|SG\.|ya29\.|eyJ|bearer|passw|pwd|api[_-]?key|secret|token|:\/\/|\d{4}[ -]\d{4}[ -]\d{4}[ -]\d{4}(?![\d-])|\d{4}[ -]\d{6}[ -]\d{5}|\b(?:card|visa|mastercard|amex|kreditkarte)\b/i
export const MASK_BEGINS = '[secret: '
const maskOf = (kind: CredentialKind | 'card_number'): string => `${MASK_BEGINS}${kind}]`
const WHOLE_KEY = new RegExp(String.raw`${PRIVATE_KEY.source}[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|$)`, 'g')
const WORD = new RegExp(`[^${BETWEEN}]{16,}`, 'g')
const VALUE_OF = new RegExp(String.raw`(${ASSIGNED.source})(?!\[|sha256:)[^\s"']{4,}`, 'gi')
const BEARER_VALUE = /(\bbearer\s{1,3})[\w.~+/-]{16,}/gi
const PASSWORD_IN_URL = /(:\/\/[^\s/:@]{1,128}:)(?!\[)[^\s/:@]{1,128}(?=@)/g

/** The text with each credential replaced, in its place, by the kind that it looks like. */
export function maskCredentials(text: string): string {
  if (!MARKS.test(text)) return text
  const cardless = withoutCards(text)
  if (credentialIn(cardless) === null) return cardless
  return cardless
    .replaceAll(WHOLE_KEY, maskOf('private_key'))
    .replaceAll(BEARER_VALUE, `$1${maskOf('token')}`)
    .replaceAll(WORD, (word) => (isToken(word) ? word.replace(BARE, maskOf('token')) : word))
    .replaceAll(VALUE_OF, `$1${maskOf('password')}`)
    .replaceAll(PASSWORD_IN_URL, `$1${maskOf('password')}`)
}

/** True if a value holds placeholders of values that the log masks. */
export const isMasked = (value: unknown): boolean =>
  /\[(?:secret(?:: \w+)?|redacted)\]|\bsha256:[\da-f]{64}\b/.test(JSON.stringify(value ?? null))

/** The mask of what people paste, and the marks by which a text is searched for it. */
export const pastedSecrets = { marks: MARKS, mask: maskCredentials }
