import { z } from 'zod'
import { fieldError, type FieldError } from '../base/check-json.ts'

export const problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    instance: z.string().optional(),
    errors: z.array(z.object({ index: z.int().optional(), path: z.string(), message: z.string() })).optional(),
  })
  .meta({
    id: 'Problem',
    description: 'RFC 9457. `errors` lists the invalid parts of the input; `index` is the position of an event in a batch.',
  })

type ProblemType = `urn:reflex:problem:${string}`
export type ProblemOptions = {
  status: number
  type: ProblemType
  title: string
  detail: string
  errors?: FieldError[] | undefined
  /** Members specific to this type of problem. */
  extension?: Record<string, unknown>
  headers?: Record<string, string>
}

/** Thrown for a request that fails; the error handler responds with problem+json (RFC 9457). */
export class Problem extends Error {
  override readonly name = 'Problem'
  readonly status: number
  readonly type: ProblemType
  readonly title: string
  readonly detail: string
  readonly errors: FieldError[] | undefined
  readonly extension: Record<string, unknown>
  readonly headers: Record<string, string>

  constructor({ status, type, title, detail, errors, extension = {}, headers = {} }: ProblemOptions) {
    super(`${title}: ${detail}`)
    this.status = status
    this.type = type
    this.title = title
    this.detail = detail
    this.errors = errors
    this.extension = extension
    this.headers = headers
  }
}

/** A single value can violate a schema in a million places. */
const MOST_ERRORS = 10

export function fromZod(error: z.ZodError, index?: number): FieldError[] {
  return error.issues
    .slice(0, MOST_ERRORS)
    .flatMap(flawsOf)
    .slice(0, MOST_ERRORS)
    .map(({ path, message }) => fieldError(path, message, index))
}

type Flaw = { path: PropertyKey[]; message: string }

/**
 * The flaws of a value. Zod names no choices for a union: this names the flaws within the one
 * alternative that the value means, or else the alternatives.
 */
function flawsOf(issue: z.core.$ZodIssue): Flaw[] {
  if (issue.code !== 'invalid_union') return [{ path: issue.path, message: messageOf(issue) }]
  const meant = issue.errors.filter((issues) => issues.length > 0 && issues.every((one) => one.path.length > 0 || isBound(one)))
  const [only] = meant
  if (only && meant.length === 1) return only.flatMap(flawsOf).map(({ path, message }) => ({ path: [...issue.path, ...path], message }))
  if (issue.message !== UNNAMED || issue.errors.length === 0) return [{ path: issue.path, message: issue.message }]
  const choices = new Set(issue.errors.flatMap(choicesOf))
  return [{ path: issue.path, message: choices.size === 0 ? issue.message : `must be one of ${[...choices].join(', ')}` }]
}

/** A value of another size has the type of the alternative. */
const isBound = ({ code }: z.core.$ZodIssue): boolean => code === 'too_big' || code === 'too_small'

/** Zod's own message for a union. */
const UNNAMED = 'Invalid input'

/** The values that an alternative takes, by the flaws that it found. */
function choicesOf(issues: readonly z.core.$ZodIssue[]): string[] {
  const missing = issues.filter(({ path, code }) => path.length === 1 && code === 'invalid_type').map(({ path }) => String(path[0]))
  if (missing.length > 0) return [`an object with ${missing.join(' and ')}`]
  return issues.flatMap((issue) => {
    if (issue.code === 'invalid_value') return issue.values.map((value) => JSON.stringify(value))
    if (issue.code === 'invalid_type') return [`${/^[aeiou]/.test(issue.expected) ? 'an' : 'a'} ${issue.expected}`]
    return issue.code === 'invalid_union' ? issue.errors.flatMap(choicesOf) : []
  })
}

/** The message of Zod for a field that is not there. */
const MISSING = /^Invalid input: expected (.+), received undefined$/

/**
 * Replaces Zod's message for enums, which does not name the allowed values as JSON, and the one for
 * a field that is not there, whose value nobody has sent as `undefined`.
 */
function messageOf(issue: z.core.$ZodIssue): string {
  const [, expected] = MISSING.exec(issue.message) ?? []
  if (expected !== undefined) return `is missing (expected ${expected})`
  if (issue.code !== 'invalid_value' || !issue.message.startsWith('Invalid option')) return issue.message
  return `must be one of ${issue.values.map((value) => JSON.stringify(value)).join(', ')}`
}
