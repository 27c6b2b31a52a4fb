/** A context as JSON: `text` holds it whole but for the fields in `late`, whose JSON comes by itself, to be parsed when it is read. */
export type ContextText = { text: string; late: readonly string[] }

const LARGE = 256
const MOST_LATE = 24

/** `late` holds names and JSON in turns. In `text` a 0 keeps such a field's place. */
export function contextText(context: unknown): ContextText {
  if (typeof context !== 'object' || context === null || Array.isArray(context))
    return { text: JSON.stringify(context) ?? 'null', late: [] }
  const late: string[] = []
  const fields = Object.entries(context).flatMap(([name, value]) => {
    const json = JSON.stringify(value)
    if (json === undefined) return []
    if (json.length < LARGE || late.length >= MOST_LATE * 2) return [`${JSON.stringify(name)}:${json}`]
    late.push(name, json)
    return [`${JSON.stringify(name)}:0`]
  })
  return { text: `{${fields.join()}}`, late }
}
