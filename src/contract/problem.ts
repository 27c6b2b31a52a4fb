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

export type ProblemType = `urn:reflex:problem:${string}`
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

/** One value can violate a schema in a million places. */
const MOST_ERRORS = 10

export function fromZod(error: z.ZodError, index?: number): FieldError[] {
  return error.issues.slice(0, MOST_ERRORS).map((issue) => fieldError(issue.path, messageOf(issue), index))
}

/** Replaces Zod's message for enums, which does not name the allowed values as JSON. */
function messageOf(issue: z.core.$ZodIssue): string {
  if (issue.code !== 'invalid_value' || !issue.message.startsWith('Invalid option')) return issue.message
  return `must be one of ${issue.values.map((value) => JSON.stringify(value)).join(', ')}`
}
