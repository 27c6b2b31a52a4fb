import { estimateTokenCount } from 'tokenx'
import type { Json, JsonFields } from '../../base/json.ts'
import type { Question } from '../plan/slots.ts'

const RESULT_TOKENS = 50
/** The limit of a reason: a model that reads half an error cannot correct its call. */
const REASON_TOKENS = 300

type ResultMessage = {
  skill_id: string
  /** `ok`, `reused`, `partial_failure`, `deny`, … */
  status: string
  outputs?: JsonFields
  reason?: string
}

/**
 * The result for the model in at most 50 tokens, or 300 with a reason: outputs are shortened, then
 * omitted, and only then the reason is.
 */
export function formatResult({ skill_id, status, outputs = {}, reason = '' }: ResultMessage): string {
  const reasons = reason === '' ? [''] : [800, 400, 200, 120, 80, 40, 20].map((length) => cut(reason, length))
  const shortened = [400, 160, 80, 40, 20].map((length) => shortenOutputs(outputs, length))
  const hasOutputs = Object.keys(outputs).length > 0
  const whole = { skill_id, status, ...(hasOutputs ? { outputs } : {}), ...(reason === '' ? {} : { reason }) }
  const versions: JsonFields[] = [
    whole,
    ...(hasOutputs ? shortened.map((some) => ({ ...whole, outputs: some })) : []),
    ...reasons.map((some) => ({
      skill_id,
      status,
      ...(hasOutputs ? { note: 'outputs left out' } : {}),
      ...(some === '' ? {} : { reason: some }),
    })),
    ...[40, 20, 8].map((length) => ({ skill_id: cut(skill_id, length), status: cut(status, length) })),
  ]
  const most = reason === '' ? RESULT_TOKENS : REASON_TOKENS
  const fitting = versions.map((fields) => block('SKILL_RESULT', fields)).find((text) => estimateTokenCount(text) <= most)
  return fitting ?? block('SKILL_RESULT', { status: 'ended' })
}

export const formatClarify = (questions: readonly Question[]): string =>
  block('CLARIFY', { questions: questions.map(({ slot, question }) => ({ slot, question })) })

/** The text cannot end its own block: `<` is written as JSON may write it. */
const block = (tag: string, fields: JsonFields): string => `<${tag}>${JSON.stringify(fields).replaceAll('<', String.raw`\u003c`)}</${tag}>`

const shortenOutputs = (outputs: JsonFields, length: number): JsonFields =>
  Object.fromEntries(Object.entries(outputs).map(([name, value]) => [name, shorten(value, length)]))

function shorten(value: Json, length: number): Json {
  if (typeof value === 'string') return cut(value, length)
  const text = JSON.stringify(value)
  return text.length <= length ? value : cut(text, length)
}

const cut = (text: string, length: number): string => (text.length <= length ? text : `${text.slice(0, length).toWellFormed()}…`)
