import { asSchema } from 'ai'
import { z } from 'zod'
import { isJsonFields, type JsonFields } from '../../base/json.ts'
import { oncePer } from '../../base/once-per.ts'
import { onlyReads, type ToolDefinition } from '../define-tool.ts'
import { fieldsIn, type Field } from './values.ts'

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
    'password passphrase'
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

/** `kinds`: its name, and its format if the schema has one. */
export type Destination = Field & { kinds: readonly string[] }
type Tool = Pick<ToolDefinition, 'input' | 'shown_input' | 'repeatable' | 'reads' | 'destinations'>

/**
 * The arguments of a call that decide where it goes or on whom it acts. They are declared by the
 * tool, or assumed from formats and names.
 */
export function destinationsIn(input: unknown, tool: Tool): Destination[] {
  const { destinations: declared } = tool
  if (declared?.length === 0) return []
  const formats = formatsOf(tool)
  const listed = onlyReads(tool) ? READ : ACT
  return Array.from(fieldsIn(input)).flatMap((field): Destination[] => {
    const format = formats.get(field.path)
    const names = field.path.split('.')
    const is_one = declared
      ? declared.some((path) => field.path === path || field.path.startsWith(`${path}.`))
      : format !== undefined || names.some((name) => isNamed(name, listed))
    return is_one ? [{ ...field, kinds: [...names, ...(format === undefined ? [] : [format])] }] : []
  })
}

/** True if its input names an address to read from: then strangers may write what it gives. */
export const readsAddress = oncePer((tool: Tool): boolean => {
  const paths = [...(tool.destinations ?? []), ...propertiesOf(schemaOf(tool))].map((path) => path.split('.').at(-1) ?? '')
  const remote = new Set(['url', 'uri', 'link', 'href', 'website', 'site'])
  return paths.some((name) => isNamed(name, remote)) || Array.from(formatsOf(tool).values()).includes('uri')
})

/** The formats of a tool's arguments, by path; items of lists have the path of their list. */
const formatsOf = oncePer((tool: Tool): ReadonlyMap<string, string> => {
  const found = new Map<string, string>()
  visit(schemaOf(tool), '', (path, { format }) => {
    const known = typeof format === 'string' && Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined
    if (known !== undefined) found.set(path, known)
  })
  return found
})

function propertiesOf(schema: JsonFields): string[] {
  const paths: string[] = []
  visit(schema, '', (path) => path !== '' && paths.push(path))
  return paths
}

const DEEPEST = 6

function visit(schema: unknown, path: string, see: (path: string, schema: JsonFields) => unknown, depth = 0): void {
  if (!isJsonFields(schema) || depth > DEEPEST) return
  see(path, schema)
  const { properties, items, anyOf, oneOf, allOf } = schema
  if (isJsonFields(properties))
    for (const [name, inner] of Object.entries(properties)) visit(inner, path === '' ? name : `${path}.${name}`, see, depth + 1)
  for (const inner of [items, anyOf, oneOf, allOf].flat()) visit(inner, path, see, depth + 1)
}

function schemaOf({ input, shown_input }: Tool): JsonFields {
  try {
    const schema = shown_input ? asSchema(shown_input).jsonSchema : z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' })
    return isJsonFields(schema) ? schema : {}
  } catch {
    return {}
  }
}
