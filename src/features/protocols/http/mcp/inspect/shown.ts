import { isJsonFields, type Json } from '../../../../../base/json.ts'

/** The longest text of an answer, which a model reads as a whole. */
export const MOST_CHARACTERS = 24_000

/** Longest text and list, from generous to strict. */
const steps = [
  { text: 4000, items: 100 },
  { text: 1000, items: 40 },
  { text: 300, items: 15 },
  { text: 100, items: 5 },
]

/** C1 and other controls, and marks that change the direction or hide text. */
const INVISIBLE = /[\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udfff]/g

/** JSON of bounded length in which every control and invisible character is escaped. */
export function shown(value: Json): string {
  for (const step of steps) {
    const text = escaped(JSON.stringify(shortened(value, step)))
    if (text.length <= MOST_CHARACTERS) return text
  }
  const text = escaped(JSON.stringify(value))
  return JSON.stringify({ shortened: `${text.length} characters; ask for less`, begins_with: text.slice(0, MOST_CHARACTERS / 4) })
}

const escaped = (text: string): string =>
  text.replaceAll(INVISIBLE, (found) =>
    Array.from({ length: found.length }, (_, index) => `\\u${found.charCodeAt(index).toString(16).padStart(4, '0')}`).join(''),
  )

type InspectStep = (typeof steps)[number]

function shortened(value: Json, step: InspectStep): Json {
  if (typeof value === 'string')
    return value.length <= step.text ? value : `${value.slice(0, step.text)}… (${value.length - step.text} more characters)`
  if (Array.isArray(value)) {
    const kept = value.slice(0, step.items).map((item) => shortened(item, step))
    return value.length <= step.items ? kept : [...kept, `… (${value.length - step.items} more items)`]
  }
  if (!isJsonFields(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, shortened(item, step)]))
}
