/** The parts of JSON Schema that the form of a setting is made from. */
export type SettingSchema = {
  type?: string
  description?: string
  default?: unknown
  examples?: unknown[]
  enum?: string[]
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  minLength?: number
  maxLength?: number
  items?: SettingSchema
  properties?: Record<string, SettingSchema>
  required?: string[]
  anyOf?: SettingSchema[]
}

/** The way in which a value is edited. `json`: everything that has no field of its own. */
export type FieldKind = 'choice' | 'line' | 'text' | 'number' | 'switch' | 'lines' | 'group' | 'json'

const LONG = 300
const simple: Readonly<Record<string, FieldKind>> = { integer: 'number', number: 'number', boolean: 'switch' }

export function kindOf({ type = '', enum: options, items, properties, maxLength = 0 }: SettingSchema): FieldKind {
  if (options) return 'choice'
  if (type === 'string') return maxLength > LONG ? 'text' : 'line'
  if (type === 'array') return items?.type === 'string' ? 'lines' : 'json'
  const isGroup = properties && Object.values(properties).every((one) => !['group', 'json'].includes(kindOf(one)))
  return isGroup ? 'group' : (simple[type] ?? 'json')
}

export const same = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)
