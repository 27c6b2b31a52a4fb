import type { Computing } from '../../base/computing.ts'
import { fieldError, type FieldError } from '../../base/check-json.ts'
import { dryRun } from '../../reflexes/run-reflex.ts'
import { isolateSandbox } from '../../reflexes/isolate-sandbox.ts'
import { sampleWith } from '../../reflexes/reflex-context.ts'
import { checkReflex, type CodeError } from '../../reflexes/static-check.ts'
import { instantiateTemplate } from '../../reflexes/templates/define-template.ts'
import { templates } from '../../reflexes/templates/index.ts'
import { invalid } from '../problems/refusals.ts'

const MOST_ERRORS = 10

type Source = { code?: string | undefined; template?: string | undefined; params?: Record<string, unknown> | undefined }
export type WrittenReflex = { code: string; hash: string; template: string | null; description: string }

/** The code of a body or its template. Throws unless it passes the checks and runs on a sample. */
export async function writtenCode(source: Source, sample: Record<string, unknown>, computing: Computing): Promise<WrittenReflex> {
  const { code, ...origin } = codeOf(source)
  const checked = await checkReflex(code)
  if (!checked.ok) throw refusedCode(checked.errors)
  const tried = dryRun(isolateSandbox(), { code, hash: checked.hash }, sampleWith(sample))
  computing.spend(tried.run.fuel)
  if (!tried.ok) throw refusedCode(tried.errors)
  return { code, hash: checked.hash, ...origin }
}

function codeOf({ code, template: name, params }: Source): Omit<WrittenReflex, 'hash'> {
  if (code !== undefined && name === undefined && params === undefined) return { code, template: null, description: '' }
  if (code !== undefined || name === undefined) throw wrongFields('template', 'send either code, or a template and its params')
  const template = templates.find((known) => known.name === name)
  if (!template) throw wrongFields('template', `there is no template ${name}; there are ${templates.map((known) => known.name).join(', ')}`)
  const instance = instantiateTemplate(template, params ?? {})
  if (instance.ok) return { code: instance.code, template: name, description: template.description }
  const errors = instance.errors
    .slice(0, MOST_ERRORS)
    .map(({ path, message }) => ({ path: path === '' ? 'params' : `params.${path}`, message }))
  throw invalid(`Invalid parameters for ${name}: ${errors[0]?.path}: ${errors[0]?.message}.`, errors)
}

const wrongFields = (path: string, message: string) => invalid(`The body is not valid: ${message}.`, [fieldError([path], message)])

function refusedCode(found: readonly CodeError[]) {
  const errors = found
    .slice(0, MOST_ERRORS)
    .map(({ line, column, message }): FieldError => ({ path: 'code', message: `line ${line}, column ${column}: ${message}` }))
  return invalid(`The code is rejected: ${errors[0]?.message}.`, errors)
}
