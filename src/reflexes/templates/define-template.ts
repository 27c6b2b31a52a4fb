import { z } from 'zod'

/** A reflex for a common need. With its parameters it becomes code. */
export type ReflexTemplate<Schema extends z.ZodType = z.ZodType> = {
  name: string
  description: string
  params: Schema
  /** Takes the schema's output, with defaults filled in. */
  code(params: z.output<Schema>): string
}

export const defineTemplate = <Schema extends z.ZodType>(template: ReflexTemplate<Schema>): ReflexTemplate<Schema> => template

type Instance = { ok: true; code: string } | { ok: false; errors: { path: string; message: string }[] }

export function instantiateTemplate<Schema extends z.ZodType>(template: ReflexTemplate<Schema>, input: unknown): Instance {
  const parsed = template.params.safeParse(input)
  if (parsed.success) return { ok: true, code: `${template.code(parsed.data).trim()}\n` }
  return { ok: false, errors: parsed.error.issues.map(({ path, message }) => ({ path: path.join('.'), message })) }
}

/** A value as JavaScript source. JSON cannot become code. */
export const literal = (value: unknown): string => JSON.stringify(value, null, 2)

export const windowName = z.enum(['10s', '1m', '10m'])
export const eventTypeName = z.string().min(1).max(128)

/**
 * JavaScript that fills placeholders such as `{event.address}` in an action from the context. A
 * string that is only a placeholder keeps the field's type.
 */
export const fillPlaces = `
function fill(value, context) {
  if (typeof value === 'string') return fillText(value, context)
  if (Array.isArray(value)) return value.map((item) => fill(item, context))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fill(item, context)]))
}

function fillText(text, context) {
  const whole = /^\\{([\\w.]+)\\}$/.exec(text)
  if (whole) return read(context, whole[1]) ?? null
  return text.replace(/\\{([\\w.]+)\\}/g, (place, path) => {
    const found = read(context, path)
    return found === undefined ? place : String(found)
  })
}

function read(context, path) {
  return path.split('.').reduce((at, key) => (at === null || typeof at !== 'object' || !Object.hasOwn(at, key) ? undefined : at[key]), context)
}
`.trim()
