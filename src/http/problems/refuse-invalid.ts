import type { z } from '@hono/zod-openapi'
import type { ValidationTargets } from 'hono'
import { fromZod } from '../../contract/problem.ts'
import { invalid } from './refusals.ts'

type Judged<Output> = { target: keyof ValidationTargets } & ({ success: true; data: Output } | { success: false; error: z.ZodError })

/** The hook of every route: what does not fit its schema is refused, naming each place. */
export function refuseInvalid<Output>(judged: Judged<Output>): Output {
  if (judged.success) return judged.data
  const errors = fromZod(judged.error)
  const where = { json: 'body', query: 'query', param: 'path', header: 'header', cookie: 'cookie', form: 'form' }[judged.target]
  const { path = '', message = '' } = errors[0] ?? {}
  throw invalid(`The ${where} is not valid: ${path === '' ? '' : `${path}: `}${message}.`, errors)
}
