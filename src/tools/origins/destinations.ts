import { asSchema } from 'ai'
import { z } from 'zod'
import { isJsonFields, type JsonFields } from '../../base/json.ts'
import { oncePer } from '../../base/once-per.ts'
import { onlyReads, type ToolDefinition } from '../define-tool.ts'
import { slotsIn } from '../../base/slots.ts'
import { textOf } from '../../base/template.ts'
import { fillSlots } from '../slot-text.ts'
import { fieldsIn, linksIn, type Field } from './values.ts'

/** Formats of JSON Schema that are addresses, by what they are called in settings. */
const FORMATS: Readonly<Record<string, string>> = {
  email: 'email',
  'idn-email': 'email',
  uri: 'uri',
  url: 'uri',
  iri: 'uri',
  'uri-reference': 'uri',
  hostname: 'hostname',
  'idn-hostname': 'hostname',
  ip: 'ip',
  ipv4: 'ip',
  ipv6: 'ip',
  cidrv4: 'ip',
  cidrv6: 'ip',
  phone: 'phone',
  tel: 'phone',
  e164: 'phone',
  iban: 'iban',
}

/** Names of arguments that are addresses: a call that only reads goes there, too. */
export const ADDRESS_NAMES: readonly string[] =
  'url uri link href address host hostname domain ip endpoint webhook callback server site website path file filename'.split(' ')

/** Names of arguments that decide where an effect goes, on whom it acts, or who gets in. */
export const DESTINATION_NAMES: readonly string[] = [
  ...ADDRESS_NAMES,
  ...(
    'to cc bcc recipient receiver addressee email mail phone iban bic account payee beneficiary wallet ' +
    'target destination channel room user username member participant attendee invitee assignee owner customer group team ' +
    'id repo repository branch bucket folder table database cluster device ' +
    'password passphrase mailbox subdomain tld'
  ).split(' '),
]

const READ = new Set(ADDRESS_NAMES)
const ACT = new Set(DESTINATION_NAMES)
/** Words that only say how something is named. */
const BESIDE = new Set(['name', 'address', 'number', 'handle', 'key', 'ref'])

/** The singular words of a name: `userEmails` is `user` and `email`. */
const wordsOf = (name: string): string[] =>
  name
    .replaceAll(/(\p{Ll})(\p{Lu})/gu, '$1_$2')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '')
    .map((word) => (word.length > 3 && word.endsWith('s') && !word.endsWith('ss') ? word.replace(/(?<=ss|x|ch)es$|s$/, '') : word))

/** True if the name, its last word, or the word before one such as `name` is listed. */
function isNamed(name: string, listed: ReadonlySet<string>): boolean {
  const words = wordsOf(name)
  const last = words.at(-1) ?? ''
  if (listed.has(last) || listed.has(words.join(''))) return true
  return words.length > 1 && BESIDE.has(last) && listed.has(words.at(-2) ?? '')
}

/** True for the name of an argument that decides where an effect goes. */
export const namesDestination = (name: string): boolean => isNamed(name, ACT)

/**
 * `kinds`: its name, and its format if the schema has one. `parts`: the arguments that a request
 * joins to it.
 */
export type Destination = Field & { kinds: readonly string[]; parts?: readonly string[] }
type Tool = Pick<ToolDefinition, 'input' | 'shown_input' | 'repeatable' | 'reads' | 'destinations' | 'sends'>

/**
 * The arguments of a call that decide where it goes or on whom it acts. They are declared by the
 * tool, or assumed from formats and names. A link in another text of a call that acts leads its
 * reader somewhere, so it is one, too.
 */
export function destinationsIn(input: unknown, tool: Tool): Destination[] {
  const { destinations: declared } = tool
  if (declared?.length === 0) return []
  const formats = formatsOf(tool)
  const listed = onlyReads(tool) ? READ : ACT
  const sent = declared ? [] : sentIn(input, tool, listed)
  const given = [...fieldsIn(input), ...keysIn(input)].flatMap((field): Destination[] => {
    const format = formats.get(field.path) ?? formatOfItem(formats, field.path)
    const names = field.path.split('.')
    const is_one = declared
      ? declared.some((path) => field.path === path || field.path.startsWith(`${path}.`))
      : format !== undefined || names.some((name) => isNamed(name, listed))
    if (is_one) return [{ ...field, kinds: [...names, ...(format === undefined ? [] : [format])] }]
    const links = onlyReads(tool) || typeof field.value === 'number' ? [] : linksIn(field.value)
    return links.map((value) => ({ ...field, value, kinds: [...names, LINK] }))
  })
  return [...given, ...sent.filter(({ path, value }) => !given.some((one) => one.path === path && one.value === value))]
}

/**
 * The arguments of a tool that are taken for destinations, since it declares none: by its schema,
 * and by where its request puts them.
 */
export function assumedDestinations(tool: Tool): string[] {
  if (tool.destinations) return []
  const formats = formatsOf(tool)
  const listed = onlyReads(tool) ? READ : ACT
  const sent = new Set(sentSlots(tool, listed).flatMap(({ slots }) => slots))
  const isOne = (path: string) => sent.has(path) || formats.has(path) || path.split('.').some((name) => isNamed(name, listed))
  return Array.from(new Set(propertiesOf(schemaOf(tool)).filter(isOne)))
}

/** The fields of a request whose names say that what is in them goes there, with their slots. */
const sentSlots = ({ sends = null }: Tool, listed: ReadonlySet<string>) =>
  [...fieldsIn(sends)].flatMap(({ path, value }) => {
    const names = path.split('.')
    return names.some((name) => isNamed(name, listed)) ? [{ names, value, slots: slotsIn(value).map(({ name }) => name) }] : []
  })

/**
 * The arguments that a request puts where a name says that it goes there. What several arguments
 * are joined to, such as `{{user}}@{{host}}`, is one destination.
 */
function sentIn(input: unknown, tool: Tool, listed: ReadonlySet<string>): Destination[] {
  if (!isJsonFields(input)) return []
  return sentSlots(tool, listed).flatMap(({ names, value, slots }): Destination[] => {
    const [first, ...more] = slots.filter((name) => Object.hasOwn(input, name))
    if (first === undefined) return []
    const filled = { ...Object.fromEntries(slots.map((name) => [name, ''])), ...input }
    if (more.length > 0) {
      const joined = textOf(fillSlots(value, filled))
      return [{ path: first, name: first, value: joined, kinds: [...slots, ...names], parts: [first, ...more] }]
    }
    return Array.from(fieldsIn(input[first], { path: first, name: first }), (field) => ({ ...field, kinds: [first, ...names] }))
  })
}

const LINK = 'link'

/** An address as a key, for example of `{recipients: {"ann@example.com": true}}`. */
const ADDRESS = /@|:\/\/|^\d{1,3}(?:\.\d{1,3}){3}$/

export function* keysIn(value: unknown, path = '', name = '', depth = 0): Generator<Field> {
  if (depth > DEEPEST) return
  if (Array.isArray(value)) for (const item of value) yield* keysIn(item, path, name, depth + 1)
  else if (isJsonFields(value))
    for (const [key, inner] of Object.entries(value)) {
      if (path !== '' && ADDRESS.test(key)) yield { path, name, value: key }
      yield* keysIn(inner, path === '' ? key : `${path}.${key}`, key, depth + 1)
    }
}

/** The format of a value in a record, whose keys the schema does not name. */
function formatOfItem(formats: ReadonlyMap<string, string>, path: string): string | undefined {
  const names = path.split('.')
  for (const [known, format] of formats) {
    if (!known.includes(ANY)) continue
    const parts = known.split('.')
    if (parts.length === names.length && parts.every((part, index) => part === ANY || part === names[index])) return format
  }
  return undefined
}

/** Stands for each key of a record. */
const ANY = '*'

/**
 * True if its input names an address to read from: then strangers may write what it gives. So may
 * they if its arguments are not known, as of an MCP tool whose server has not listed it yet.
 */
export const readsAddress = oncePer((tool: Tool): boolean => {
  const { properties, additionalProperties } = schemaOf(tool)
  if (properties === undefined && isJsonFields(additionalProperties)) return true
  const paths = [...(tool.destinations ?? []), ...propertiesOf(schemaOf(tool))].map((path) => path.split('.').at(-1) ?? '')
  const remote = new Set(['url', 'uri', 'link', 'href', 'website', 'site'])
  return paths.some((name) => isNamed(name, remote)) || Array.from(formatsOf(tool).values()).includes('uri')
})

/**
 * True if its input names what it reads, such as a file or an address. Then the text that it gives
 * was written by anybody, and is no record that the tool made.
 */
export const readsNamed = oncePer((tool: Tool): boolean =>
  [...(tool.destinations ?? []), ...propertiesOf(schemaOf(tool))].some((path) => isNamed(path.split('.').at(-1) ?? '', READ)),
)

/** The formats of a tool's arguments, by path; items of lists have the path of their list. */
const formatsOf = oncePer((tool: Tool): ReadonlyMap<string, string> => {
  const found = new Map<string, string>()
  const schema = schemaOf(tool)
  visit(schema, (path, { format }) => {
    const known = typeof format === 'string' && Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined
    if (known !== undefined) found.set(path, known)
  })
  return found
})

function propertiesOf(schema: JsonFields): string[] {
  const paths: string[] = []
  visit(schema, (path) => path !== '' && paths.push(path))
  return paths
}

const DEEPEST = 6
/** References multiply the parts of a schema. Once there are so many, no deeper ones are seen. */
const MOST_PARTS = 5000

function visit(root: JsonFields, see: (path: string, schema: JsonFields) => unknown): void {
  const parts: { schema: unknown; path: string; depth: number }[] = [{ schema: root, path: '', depth: 0 }]
  for (const { schema, path, depth } of parts) {
    if (!isJsonFields(schema)) continue
    see(path, schema)
    if (depth === DEEPEST || parts.length >= MOST_PARTS) continue
    const add = (inner: unknown, at = path) => {
      if (inner !== undefined) parts.push({ schema: inner, path: at, depth: depth + 1 })
    }
    const within = (name: string, inner: unknown) => add(inner, path === '' ? name : `${path}.${name}`)
    const { properties, additionalProperties, items, prefixItems, anyOf, oneOf, allOf, $ref } = schema
    if (isJsonFields(properties)) for (const [name, inner] of Object.entries(properties)) within(name, inner)
    within(ANY, additionalProperties)
    for (const inner of [items, prefixItems, anyOf, oneOf, allOf, referred(root, $ref)].flat()) add(inner)
  }
}

/** The schema that a reference within the same document names. */
function referred(root: JsonFields, reference: unknown): unknown {
  if (reference === '#') return root
  if (typeof reference !== 'string' || !reference.startsWith('#/')) return undefined
  const at = (of: unknown, name: string): unknown => (isJsonFields(of) && Object.hasOwn(of, name) ? of[name] : undefined)
  return reference.slice(2).split('/').reduce<unknown>(at, root)
}

function schemaOf({ input, shown_input }: Tool): JsonFields {
  try {
    const schema = shown_input ? asSchema(shown_input).jsonSchema : z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' })
    return isJsonFields(schema) ? schema : {}
  } catch {
    return {}
  }
}
