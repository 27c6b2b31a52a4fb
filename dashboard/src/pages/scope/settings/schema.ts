/** The parts of JSON Schema that the form of a setting is made from. */
export type Schema = {
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
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  anyOf?: Schema[]
}

/** The way in which a value is edited. `json`: everything that has no field of its own. */
export type FieldKind = 'choice' | 'line' | 'text' | 'number' | 'switch' | 'lines' | 'group' | 'json'

const LONG = 300

export function kindOf({ type, enum: options, items, properties, maxLength = 0 }: Schema): FieldKind {
  if (options) return 'choice'
  switch (type) {
    case 'string':
      return maxLength > LONG ? 'text' : 'line'
    case 'integer':
    case 'number':
      return 'number'
    case 'boolean':
      return 'switch'
    case 'array':
      return items?.type === 'string' ? 'lines' : 'json'
    case 'object':
      return properties && Object.values(properties).every((one) => !['group', 'json'].includes(kindOf(one))) ? 'group' : 'json'
    default:
      return 'json'
  }
}

export const same = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)
