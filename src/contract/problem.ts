import type { z } from 'zod'
import { fieldError, type FieldError } from '../base/field-error.ts'

export type ProblemType = `urn:reflex:problem:${string}`
export type ProblemOptions = {
  status: number
  type: ProblemType
  title: string
  detail: string
  errors?: FieldError[]
  /** What this kind of problem says beside these. */
  extension?: Record<string, unknown>
  headers?: Record<string, string>
}

/** Thrown where a request cannot be served; the app's error handler turns it into RFC 9457's `application/problem+json`. */
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

/** One value can break a schema in a million places; a sender needs the first few. */
const MOST_ERRORS = 10

export function fromZod(error: z.ZodError, index?: number): FieldError[] {
  return error.issues.slice(0, MOST_ERRORS).map((issue) => fieldError(issue.path, messageOf(issue), index))
}

/** Zod's own words for a value that is none of a few do not say it as a sentence about the field. */
function messageOf(issue: z.core.$ZodIssue): string {
  if (issue.code !== 'invalid_value' || !issue.message.startsWith('Invalid option')) return issue.message
  return `must be one of ${issue.values.map((value) => JSON.stringify(value)).join(', ')}`
}
