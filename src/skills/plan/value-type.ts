import { isJsonFields, type Json } from '../../base/json.ts'
import type { ValueType } from '../manifest/signature.ts'

const fits: Record<ValueType, (value: Json) => boolean> = {
  string: (value) => typeof value === 'string',
  url: (value) => typeof value === 'string' && URL.canParse(value),
  number: (value) => typeof value === 'number' && Number.isFinite(value),
  integer: (value) => Number.isSafeInteger(value),
  boolean: (value) => typeof value === 'boolean',
  list: (value) => Array.isArray(value),
  object: (value) => isJsonFields(value),
}

/** Whether a value is of a type that a manifest names. A number in a text is no number: nothing is converted. */
export const fitsType = (type: ValueType, value: Json): boolean => fits[type](value)
