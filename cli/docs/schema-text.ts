export type DocumentedSchema = {
  $ref?: string
  type?: string | string[]
  const?: unknown
  enum?: unknown[]
  format?: string
  items?: DocumentedSchema
  properties?: Record<string, DocumentedSchema>
  required?: string[]
  additionalProperties?: boolean | DocumentedSchema
  anyOf?: DocumentedSchema[]
  oneOf?: DocumentedSchema[]
  description?: string
  default?: unknown
} & Limits
type Limits = {
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
}

/** A schema as a type in code: `{ id: string, attempts: integer, error: string | null }`. */
export function schemaText(schema: DocumentedSchema, indent = ''): string {
  const { $ref, anyOf, oneOf, items, properties } = schema
  if ($ref !== undefined) return referenceName($ref)
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  const choice = anyOf ?? oneOf
  if (choice) return [...new Set(choice.map((one) => schemaText(one, indent)))].join(' | ')
  if (items) return listText(schemaText(items, indent))
  if (properties) return objectText(schema, indent)
  return plainText(schema)
}

const referenceName = ($ref: string): string => $ref.split('/').at(-1) ?? $ref

export function limitsText({
  minimum,
  maximum,
  exclusiveMinimum,
  minLength,
  maxLength,
  minItems,
  maxItems,
  default: standard,
}: DocumentedSchema): string {
  const pieces = [
    range(minimum ?? (exclusiveMinimum === undefined ? undefined : `more than ${exclusiveMinimum}`), maximum),
    range(minLength, maxLength, 'characters'),
    range(minItems, maxItems, 'items'),
    standard === undefined || standard === '' ? '' : `default ${JSON.stringify(standard)}`,
  ]
  return pieces.filter((piece) => piece !== '').join(', ')
}

function range(least: number | string | undefined, most: number | undefined, what = ''): string {
  const end = most === undefined || most === Number.MAX_SAFE_INTEGER ? undefined : most
  if (least === undefined && end === undefined) return ''
  const text = end === undefined ? `at least ${least}` : least === undefined ? `at most ${end}` : `${least} to ${end}`
  return `${text} ${what}`.trim()
}

const listText = (item: string): string => (item.includes(' | ') ? `(${item})[]` : `${item}[]`)

function objectText({ properties = {}, required = [], additionalProperties }: DocumentedSchema, indent: string): string {
  const inner = `${indent}  `
  const lines = Object.entries(properties).map(([name, schema]) => {
    const note = [limitsText(schema), schema.description].filter(Boolean).join('. ')
    return `${inner}${name}${required.includes(name) ? '' : '?'}: ${schemaText(schema, inner)}${note ? `  // ${note}` : ''}`
  })
  if (isOpen(additionalProperties)) lines.push(`${inner}…  // the type's or kind's own fields`)
  return lines.length === 0 ? '{}' : `{\n${lines.join('\n')}\n${indent}}`
}

const isOpen = (additional: DocumentedSchema['additionalProperties']): boolean =>
  additional === true || (typeof additional === 'object' && Object.keys(additional).length === 0)

function plainText({ type, format, additionalProperties }: DocumentedSchema): string {
  if (type === 'object' && typeof additionalProperties === 'object') return `{ [name]: ${schemaText(additionalProperties)} }`
  const types = [type ?? 'any'].flat().map((one) => (one === 'string' && format === 'date-time' ? 'time' : one))
  return types.join(' | ')
}
