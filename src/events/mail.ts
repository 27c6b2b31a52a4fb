import { createHash } from 'node:crypto'

/** A parsed mail, as postal-mime gives it. */
export type ParsedMail = {
  /** In their order, with names in lower case: what the receiving server adds comes first. */
  headers: readonly { key: string; value: string }[]
  from?: { address?: string | undefined } | undefined
  subject?: string | undefined
  messageId?: string | undefined
  inReplyTo?: string | undefined
  references?: string | undefined
  text?: string | undefined
  html?: string | undefined
}

/** The body of a delivery. `thread` names the mail that began the conversation. */
type MailDelivery = {
  from: string
  to: string
  subject: string
  text: string
  message_id: string
  references: string
  thread: string
}

const LONGEST_TEXT = 20_000
const LONGEST_SUBJECT = 300
const MOST_REFERENCES = 20
const ID = /<[^<>\s]{1,250}>/g

const headerOf = ({ headers }: ParsedMail, name: string): string => headers.find(({ key }) => key === name)?.value ?? ''

/** A mail that a program sent by itself: an answer to it may be answered for ever. */
export function isAutomatic(mail: ParsedMail, envelope_from: string): boolean {
  const submitted = headerOf(mail, 'auto-submitted').trim().toLowerCase()
  const is_bulk = /^(?:bulk|junk|list)$/i.test(headerOf(mail, 'precedence').trim()) || headerOf(mail, 'list-id') !== ''
  return is_bulk || (submitted !== '' && !submitted.startsWith('no')) || envelope_from === ''
}

/** The server that receives for Email Routing, as it names itself in what it found. */
const RECEIVER = 'mx.cloudflare.net'

/**
 * True if the receiving server found that the mail is from its sender's domain: by DMARC, or by a
 * signature or an envelope of that domain. Only its own header counts, which is the first.
 */
export function isAuthenticated(mail: ParsedMail): boolean {
  const domain = domainOf(mail.from?.address ?? '')
  const [server = '', ...found] = bareOf(headerOf(mail, 'authentication-results')).split(';')
  const senders = mail.headers.filter(({ key }) => key === 'from')
  if (domain === '' || senders.length !== 1 || server.trim().toLowerCase() !== RECEIVER) return false
  const results = found.map(resultOf)
  const passed = (method: string, property: string) =>
    results.some((one) => one.get(method) === 'pass' && isWithin(domain, domainOf(one.get(property) ?? '')))
  if (results.some((one) => one.get('dmarc') === 'fail')) return false
  return passed('dmarc', 'header.from') || passed('dkim', 'header.d') || passed('spf', 'smtp.mailfrom')
}

/**
 * A header without its comments, which nest, and without quoted texts: the sender wrote those, such
 * as the part of an address before its `@`. Nothing is left of one in which they do not end.
 */
function bareOf(text: string): string {
  let [bare, depth, is_quoted] = ['', 0, false]
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at)
    if (character === '\\') at += 1
    else if (character === '"' && depth === 0) is_quoted = !is_quoted
    else if (is_quoted) continue
    else if (character === '(') depth += 1
    else if (character === ')' && depth > 0) depth -= 1
    else if (depth === 0) bare += character
  }
  return depth === 0 && !is_quoted ? bare : ''
}

/** The words `name=value` of one result. */
const resultOf = (text: string): Map<string, string> =>
  new Map(Array.from(text.matchAll(/(?<![\w.])([\w.]+)=(\S+)/g), ([, name = '', value = '']) => [name.toLowerCase(), value.toLowerCase()]))

const domainOf = (address: string): string => address.toLowerCase().slice(address.lastIndexOf('@') + 1)

/** The same domain, or one that it is a part of. A domain of one label is nobody's. */
const isWithin = (domain: string, authority: string): boolean =>
  authority.includes('.') && (domain === authority || domain.endsWith(`.${authority}`))

/** The mail as a delivery; null for one without a sender. */
export function deliveryOf(mail: ParsedMail, to: string): MailDelivery | null {
  const from = mail.from?.address?.trim().toLowerCase() ?? ''
  if (!/^[^\s@<>]+@[^\s@<>]+$/.test(from)) return null
  const [message_id = ''] = idsIn(mail.messageId)
  const known = [...idsIn(mail.references), ...idsIn(mail.inReplyTo)]
  const [root = message_id] = known
  return {
    from,
    to: to.toLowerCase(),
    subject: cut((mail.subject ?? '').replaceAll(/\s+/g, ' ').trim(), LONGEST_SUBJECT),
    text: cut(textOf(mail), LONGEST_TEXT),
    message_id,
    references: [...new Set([...known, message_id])]
      .filter((id) => id !== '')
      .slice(-MOST_REFERENCES)
      .join(' '),
    thread: createHash('sha256')
      .update(root === '' ? JSON.stringify(mail) : root)
      .digest('hex')
      .slice(0, 16),
  }
}

const idsIn = (text = ''): string[] => text.match(ID) ?? []

/** The beginning of a text. Half of a character at its end would make the whole mail invalid. */
const cut = (text: string, most: number): string => text.slice(0, most).toWellFormed()

const textOf = ({ text = '', html = '' }: ParsedMail): string => (text.trim() !== '' ? text : wordsIn(html)).trim()

/** Nobody reads what is in such an element: the rest of the mail, if it does not end. */
const UNSAID = [
  { begins: /^<style\b/i, ends: /<\/style/gi },
  { begins: /^<script\b/i, ends: /<\/script/gi },
]
const LONGEST_BEGINNING = 10

/** The words of HTML. The time grows no faster than the text, whatever a stranger sends. */
function wordsIn(html: string): string {
  const said: string[] = []
  let [at, length] = [0, 0]
  while (at < html.length && length <= LONGEST_TEXT) {
    const tag = html.indexOf('<', at)
    const words = html.slice(at, tag < 0 ? html.length : tag).replaceAll(/\s+/g, ' ')
    if (words.trim() !== '') {
      said.push(words)
      length += words.length
    }
    const end = tag < 0 ? -1 : html.indexOf('>', tag)
    if (end < 0) break
    at = end + 1
    const beginning = html.slice(tag, tag + LONGEST_BEGINNING)
    const ends = UNSAID.find(({ begins }) => begins.test(beginning))?.ends
    if (!ends) continue
    ends.lastIndex = at
    at = ends.exec(html)?.index ?? html.length
  }
  return said.join(' ').replaceAll(/\s+/g, ' ')
}
