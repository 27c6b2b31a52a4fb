import { parseCloudEvent } from '../../events/cloud-event.ts'
import { limits } from '../../base/limits.ts'
import { type EventRules, type ParsedEvent, parseEvent } from '../../events/parse-event.ts'
import { parseJson } from '../../base/parse-json.ts'
import type { Problem } from '../../contract/problem.ts'
import { refusal } from '../problems/refusals.ts'

/** An event of a body, not yet validated. `index` is null if the body is a single event. */
export type BodyItem = { index: number | null; line: number | null } & ({ ok: true; value: unknown } | { ok: false; message: string })
/** `scope` is the field that names an event's scope. */
export type Form = {
  scope: 'scope' | 'subject'
  rows: (text: string) => BodyItem[]
  parse: (value: unknown, rules: EventRules) => ParsedEvent
}

const forms: ReadonlyMap<string, Form> = new Map([
  ['application/json', { scope: 'scope', rows: oneOrMany, parse: parseEvent }],
  ['application/x-ndjson', { scope: 'scope', rows: lines, parse: parseEvent }],
  ['application/cloudevents+json', { scope: 'subject', rows: one, parse: parseCloudEvent }],
  ['application/cloudevents-batch+json', { scope: 'subject', rows: many, parse: parseCloudEvent }],
])

/** The form of a request's body, by its headers. */
export function formOf(headers: Headers): Form {
  const contentType = headers.get('Content-Type')
  const [media = '', ...parameters] = (contentType ?? '').toLowerCase().split(';')
  if (headers.has('ce-specversion') && !media.trim().startsWith('application/cloudevents')) return binaryForm(media.trim(), headers)
  const form = forms.get(media.trim())
  const charset = parameters.map((parameter) => /^\s*charset="?([^"\s]*)"?\s*$/.exec(parameter)?.[1]).find((name) => name !== undefined)
  if (form && (charset === undefined || ['utf-8', 'utf8', 'us-ascii'].includes(charset))) return form
  const accepted = [...forms.keys()].join(', ')
  const detail = `Send a Content-Type, in UTF-8, that is one of: ${accepted}.`
  throw refusal('unsupported-media-type', detail, { headers: { Accept: accepted } })
}

/** A CloudEvent in binary mode: its attributes are headers, and the body is its data. */
function binaryForm(media: string, headers: Headers): Form {
  if (media !== '' && !/^application\/(?:[\w.-]+\+)?json$/.test(media)) {
    const detail = 'The data of a CloudEvent in binary mode is a JSON object, with Content-Type: application/json.'
    throw refusal('unsupported-media-type', detail, { headers: { Accept: 'application/json' } })
  }
  const attributes = Object.fromEntries(
    Array.from(headers).flatMap(([name, value]) => (name.startsWith('ce-') ? [[name.slice('ce-'.length), decoded(name, value)]] : [])),
  )
  const rows = (text: string): BodyItem[] => [single(text.trim() === '' ? attributes : { ...attributes, data: whole(text) })]
  return { scope: 'subject', rows, parse: parseCloudEvent }
}

/** Values may be quoted, and are percent-encoded beyond ASCII. */
function decoded(name: string, value: string): string {
  const text = /^".*"$/.test(value) ? value.slice(1, -1).replaceAll(/\\(.)/g, '$1') : value
  try {
    return decodeURIComponent(text)
  } catch {
    throw refusal('invalid-event', `The header ${name} is not percent-encoded UTF-8.`)
  }
}

function oneOrMany(text: string): BodyItem[] {
  const value = whole(text)
  return Array.isArray(value) ? indexed(value) : [single(value)]
}

function one(text: string): BodyItem[] {
  return [single(whole(text))]
}

function many(text: string): BodyItem[] {
  const value = whole(text)
  if (!Array.isArray(value)) throw malformed('A batch of CloudEvents is a JSON array.')
  return indexed(value)
}

function lines(text: string): BodyItem[] {
  const filled = text
    .split('\n')
    .map((content, index) => ({ content, line: index + 1 }))
    .filter(({ content }) => content.trim() !== '')
  return counted(filled).map(({ content, line }, index) => Object.assign({ index, line }, parseJson(content)))
}

function whole(text: string): unknown {
  if (text.trim() === '') throw malformed('The body is empty.')
  const parsed = parseJson(text)
  if (!parsed.ok) throw malformed(`The body is not JSON: ${parsed.message}.`)
  return parsed.value
}

const single = (value: unknown): BodyItem => ({ index: null, line: null, ok: true, value })
const indexed = (values: unknown[]): BodyItem[] => counted(values).map((value, index) => ({ index, line: null, ok: true, value }))
const malformed = (detail: string): Problem => refusal('malformed-body', detail)

/** Checks the number of events before any of them is processed. */
function counted<Item>(items: Item[]): Item[] {
  if (items.length > 0 && items.length <= limits.events_per_request) return items
  const detail = `A request carries 1 to ${limits.events_per_request} events; this one carries ${items.length}.`
  throw refusal('wrong-event-count', detail)
}
