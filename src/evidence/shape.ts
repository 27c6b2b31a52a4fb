import { textHash } from '../base/hash.ts'
import { isJsonFields, type Json } from '../base/json.ts'

/** Fields that every event has. */
const COMMON = new Set(['id', 'scope', 'source', 'timestamp', 'meta', 'type'])
const DEEPEST = 4

/** A hash of the type of an event and of the names and kinds of its fields, without any value. */
export function shapeOf(event: { type: string }): string {
  const own = Object.entries(event).filter(([name]) => !COMMON.has(name))
  return textHash(`${event.type} ${kindOf(Object.fromEntries(own), 0)}`).slice(0, 8)
}

function kindOf(value: Json, depth: number): string {
  if (value === null) return 'null'
  if (Array.isArray(value))
    return depth < DEEPEST
      ? `[${Array.from(new Set(value.map((item) => kindOf(item, depth + 1))))
          .toSorted()
          .join()}]`
      : '[]'
  if (!isJsonFields(value)) return typeof value
  const fields = Object.entries(value).map(([name, inner]) => `${JSON.stringify(name)}:${depth < DEEPEST ? kindOf(inner, depth + 1) : ''}`)
  return `{${fields.toSorted().join()}}`
}
