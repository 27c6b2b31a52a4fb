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
export type MailDelivery = {
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
  const [server = '', ...found] = withoutComments(headerOf(mail, 'authentication-results')).split(';')
  const senders = mail.headers.filter(({ key }) => key === 'from')
  if (domain === '' || senders.length !== 1 || server.trim().toLowerCase() !== RECEIVER) return false
  const results = found.map(resultOf)
  const passed = (method: string, property: string) =>
    results.some((one) => one.get(method) === 'pass' && isWithin(domain, domainOf(one.get(property) ?? '')))
  if (results.some((one) => one.get('dmarc') === 'fail')) return false
  return passed('dmarc', 'header.from') || passed('dkim', 'header.d') || passed('spf', 'smtp.mailfrom')
}

const withoutComments = (text: string): string => text.replaceAll(/\([^()]*\)/g, ' ')

/** The words `name=value` of one result. */
const resultOf = (text: string): Map<string, string> =>
  new Map(Array.from(text.matchAll(/([\w.]+)=(\S+)/g), ([, name = '', value = '']) => [name.toLowerCase(), value.toLowerCase()]))

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
    subject: (mail.subject ?? '').replaceAll(/\s+/g, ' ').trim().slice(0, LONGEST_SUBJECT),
    text: textOf(mail).slice(0, LONGEST_TEXT),
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

const textOf = ({ text = '', html = '' }: ParsedMail): string =>
  text.trim() !== ''
    ? text.trim()
    : html
        .replaceAll(/<(style|script)\b.*?<\/\1>/gis, ' ')
        .replaceAll(/<[^>]*>/g, ' ')
        .replaceAll(/\s+/g, ' ')
        .trim()
