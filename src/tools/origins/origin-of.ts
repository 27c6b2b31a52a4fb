import type { TrustedText } from '../../contract/settings/origins.ts'
import { ADMIN_KEY_ID, hasRole, matchesScope, ROLE } from '../../contract/principal.ts'
import type { Doubt, Origin } from '../../contract/origin.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import { senderOf } from '../../contract/sender.ts'
import type { Event } from '../../core/event.ts'
import { secretHider } from '../../base/secrets.ts'
import type { Destination } from './destinations.ts'
import { isMask } from '../../traces/redact.ts'
import { formOf, type Field } from './values.ts'

/** A text that directs nothing by itself. `in`: its event type or tool. */
export type Text = { in: string; place: string; said: string; text: string; sender?: string | undefined }

/** True for an event whose words direct. An agent made an event that derives from another one. */
export const mayDirect = (event: Event, settings: Directing): boolean =>
  event.meta.causation_id === null && directsAs({ sender: senderOf(event), roles: event.meta.role ? [event.meta.role] : [] }, settings)

type Directing = Pick<Settings, 'trusted_senders' | 'learning'>

/** `roles`: of the key with which it sends, if it has one. */
type Sender = { sender: string; roles: readonly string[] }

/** True for a sender whose words direct. */
export const directsAs = (sender: Sender, { trusted_senders, learning }: Directing): boolean =>
  [...trusted_senders, ...learning.trusted_sources].some((pattern) =>
    pattern.startsWith(ROLE) ? holds(sender, pattern) : matchesScope(pattern, sender.sender),
  )

/** True for a sender with the role that `role:NAME` names. A source of that name has none. */
export const holds = ({ sender, roles }: Sender, pattern: string): boolean =>
  pattern.startsWith(ROLE) && hasRole({ roles: sender === `key:${ADMIN_KEY_ID}` ? ['admin'] : [...roles] }, pattern.slice(ROLE.length))

/** The knowledge of a scope about the values that it was given. */
export type Sources = {
  /** A value that somebody gave who may direct; null if nobody did. */
  trusted: (value: string | number) => Origin | null
  /** Longer texts, the newest first. They are read only if the value is in doubt. */
  texts: () => Iterable<Text>
  pieces: readonly TrustedText[]
  /** Masks fields by their names, as logs show them. */
  clean: (fields: Record<string, unknown>) => unknown
}

/** The rank of an origin: of several, a value has the weakest. */
const RANKS: Readonly<Record<Origin['from'], number>> = { user: 0, event: 1, output: 2, setting: 3, manifest: 4, text: 5, model: 6 }
/** The weakest of origins; of none it is `model`, since nobody named what has no text. */
export const weakest = ([first = { from: 'model' }, ...rest]: readonly Origin[]): Origin =>
  rest.reduce<Origin>((one, other) => (RANKS[other.from] > RANKS[one.from] ? other : one), first)

export const isTrusted = ({ from }: Origin): boolean => RANKS[from] < RANKS.text

export const originText = (origin: Origin): string => ('place' in origin ? `${origin.from}:${origin.place}` : origin.from)

const NAMED = /^[^<>]*<([^<>\s]+)>$/
const MOST_PARTS = 100

/** The trusted origin of a value, of all items of a list in a text, or of a named address. */
function trustedOrigin(value: string | number, { trusted }: Sources): Origin | null {
  const whole = trusted(value)
  if (whole || typeof value === 'number') return whole
  const parts = value.split(/[,;]/).map((part) => NAMED.exec(part.trim())?.[1] ?? part.trim())
  if ((parts.length === 1 && parts[0] === value.trim()) || parts.length > MOST_PARTS) return null
  const origins = parts.filter((part) => part !== '').map((part) => trusted(part))
  return origins.length > 0 && origins.every((origin) => origin !== null) ? weakest(origins) : null
}

type Found = { origin: Origin; text: Text | null; around: string | null; allowed: boolean }

/** Finds the origin of a value. A text that may direct by a setting is preferred to others. */
export function originOf(value: string | number, sources: Sources, asked: { tool: string; kinds: readonly string[] }): Found {
  const known = trustedOrigin(value, sources)
  if (known) return { origin: known, text: null, around: null, allowed: true }
  const search = searchFor(value)
  let first: Found | null = null
  for (const text of search ? sources.texts() : []) {
    const around = search?.(text.text) ?? null
    if (around === null) continue
    const allowed = sources.pieces.some((piece) => directs(piece, text, asked)) && standsAlone(value, text.text)
    const found: Found = { origin: { from: 'text', place: text.place }, text, around, allowed }
    if (allowed) return found
    first ??= found
  }
  return first ?? { origin: { from: 'model' }, text: null, around: null, allowed: search !== null && mayWrite(value, sources, asked) }
}

/** A text for what stands nowhere. `in: '*'` does not mean it. */
const WRITTEN = { in: 'model', place: '', said: '', text: '' }

/** True if a person lets models write such values. A page of a host in some text is no such one. */
function mayWrite(value: string | number, { pieces, texts }: Sources, asked: { tool: string; kinds: readonly string[] }): boolean {
  if (!pieces.some((piece) => piece.in === WRITTEN.in && directs(piece, WRITTEN, asked))) return false
  const search = searchFor(hostOf(String(value)))
  return search !== null && !Array.from(texts()).some(({ text }) => search(text) !== null)
}

const hostOf = (link: string): string => /^(?:[a-z][a-z\d+.-]*:\/\/)?(?:[^/@]*@)?([^/?#:]+)/iu.exec(link)?.[1] ?? link

function directs(piece: TrustedText, text: Text, { tool, kinds }: { tool: string; kinds: readonly string[] }): boolean {
  if (!matchesScope(piece.in, text.in)) return false
  if (piece.sender !== undefined && (text.sender === undefined || !matchesScope(piece.sender, text.sender))) return false
  if (piece.tools && !piece.tools.some((pattern) => matchesScope(pattern, tool))) return false
  return piece.what.some((what) => what === '*' || kinds.includes(what))
}

/**
 * True if the value stands in the text as it is, and not within a longer word or address. A piece
 * that may direct is read as strictly; where a piece stands is searched for loosely.
 */
function standsAlone(value: string | number, text: string): boolean {
  const escaped = loose(String(value)).replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`)
  const before = String.raw`(?<![\p{L}\p{N}_@-]|[\p{L}\p{N}]\.)`
  const after = String.raw`(?![\p{L}\p{N}_@-]|\.[\p{L}\p{N}])`
  return new RegExp(before + escaped + after, 'u').test(loose(text))
}

/** Shorter values stand in texts by chance. */
const SHORTEST = 4
const AROUND = 60

/** Finds a value in a text in any spelling, and gives the text around it. */
function searchFor(value: string | number): ((text: string) => string | null) | null {
  const plain = loose(String(value))
  const form = loose(formOf(value).replace(/^=/, ''))
  if (plain.length < SHORTEST) return null
  const encoded = secretHider([String(value)], SHORTEST)
  return (text) => {
    const within = loose(text)
    const at = [within.indexOf(plain), form.length < SHORTEST ? -1 : within.indexOf(form)].find((place) => place >= 0)
    if (at !== undefined) return within.slice(Math.max(0, at - AROUND), at + plain.length + AROUND)
    return encoded.finds(text) ? text.slice(0, 2 * AROUND) : null
  }
}

/** Without invisible characters, in one form of Unicode and one case. */
const loose = (text: string): string =>
  text
    .normalize('NFKC')
    .replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '')
    .toLowerCase()

/** Arguments of one call whose origins are shown. */
const MOST_NAMED = 20
/** A longer text is words. */
const LONGEST_NAMED = 256

/** The trusted origins of fields, by path. A list has one if all of its items do, the weakest. */
export function namesOf(fields: Iterable<Field>, trusted: Sources['trusted']): Record<string, string> {
  const found = new Map<string, Origin | null>()
  for (const { path, value } of fields) {
    const before = found.get(path)
    if (before === null || (before === undefined && found.size >= MOST_NAMED)) continue
    const origin = typeof value === 'string' && value.length > LONGEST_NAMED ? null : trusted(value)
    found.set(path, origin && before ? weakest([before, origin]) : origin)
  }
  return Object.fromEntries([...found].flatMap(([path, origin]) => (origin ? [[path, originText(origin)]] : [])))
}

/** Values of one call that are searched for in texts. A search reads all of them. */
const MOST_SEARCHED = 20

/** Destinations of a call that no trusted origin names. A value that logs mask is masked. */
export function doubtsOf(tool: string, destinations: readonly Destination[], sources: Sources): { doubt: Doubt; sentence: string }[] {
  let searched = 0
  return destinations.flatMap(({ path, name, value, kinds }) => {
    if (trustedOrigin(value, sources)) return []
    const found_in = searched < MOST_SEARCHED ? sources : { ...sources, texts: () => [], pieces: [] }
    searched += 1
    const { origin, text, around, allowed } = originOf(value, found_in, { tool, kinds })
    if (allowed) return []
    const { [name]: shown = value } = sources.clean({ [name]: value }) as Record<string, unknown>
    const is_masked = isMask(shown)
    const doubt: Doubt = {
      argument: path,
      value: String(shown).slice(0, 200),
      origin: originText(origin),
      ...(text && { in: text.in }),
      ...(around !== null && !is_masked && { around }),
    }
    return [{ doubt, sentence: sentenceOf(doubt, text) }]
  })
}

function sentenceOf({ argument, value }: Doubt, text: Text | null): string {
  const nobody = 'nobody who may direct this agent named it'
  if (text) return `\`${argument}\` (${value}) stands only in ${text.said}; ${nobody}`
  return `\`${argument}\` (${value}) stands in nothing that this agent was given: its model wrote it, and ${nobody}`
}
