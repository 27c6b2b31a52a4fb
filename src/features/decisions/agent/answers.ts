import type { Experimental_DecisionModelV4Question as ModelQuestion } from '@ai-sdk/provider'
import { canonicalJson, isJsonFields, jsonValue } from '../../../base/json.ts'
import type { Result } from '../../../base/result.ts'
import type { DecisionModelAnswer, DecisionModelAnswers, DecisionQuestion, DecisionQuestions } from '../../../contract/decision-answers.ts'
import type { DecisionResults } from '../models/ask.ts'

/** An answer below this probability is no decision that a reflex could learn. */
const SURE_AT = 0.9

/** The questions as the AI SDK's port has them: `boolean` for `noul`. */
export function modelQuestions(questions: DecisionQuestions): Record<string, ModelQuestion> {
  return Object.fromEntries(Object.entries(questions).map(([id, question]) => [id, modelQuestion(question)]))
}

// Checked as JSON where the request was parsed.
const modelQuestion = (question: DecisionQuestion): ModelQuestion =>
  ({ ...question, type: question.type === 'noul' ? 'boolean' : question.type }) as ModelQuestion

/** A list is one state; the AI SDK would take it for parts. */
export function modelState(state: unknown): string | Record<string, never> | [{ type: 'json'; value: never }] {
  if (typeof state === 'string') return state
  return Array.isArray(state) ? [{ type: 'json', value: state as never }] : (state as Record<string, never>)
}

export function wireAnswers({ answers, providerMetadata }: DecisionResults): DecisionModelAnswers {
  const about = (name: string, id: string) => {
    const given = providerMetadata?.['systemOne']?.[name]
    const value = isJsonFields(given) ? given[id] : undefined
    return value === undefined ? {} : { [name]: value }
  }
  return Object.fromEntries(
    Object.entries(answers).map(([id, given]): [string, DecisionModelAnswer] => {
      if (given.type === 'boolean') return [id, { type: 'noul', noul: given.probability }]
      return [id, { ...given, ...about('confidence', id), ...(given.type === 'score' && about('legend', id)) } as DecisionModelAnswer]
    }),
  )
}

/** A value that was decided: yes or no, an option, the index of a level. Null: not sure. */
type AnswerValue = boolean | string | number | null

/** The most probable value of an answer, with its probability; null without a distribution. */
export function likeliest(answer: DecisionModelAnswer): { value: Exclude<AnswerValue, null>; probability: number } | null {
  if (answer.type === 'noul') return { value: answer.noul >= 0.5, probability: Math.max(answer.noul, 1 - answer.noul) }
  const [best] = Object.entries(answer.probabilities ?? {}).toSorted(([, one], [, other]) => other - one)
  if (!best) return null
  return { value: answer.type === 'choice' ? answer.choice : Number(best[0]), probability: best[1] }
}

/** The decided values as the text of a reply, as a reflex gives the same decision. */
export function replyOf(answers: DecisionModelAnswers): string {
  const decided = Object.entries(answers).map(([id, answer]): [string, AnswerValue] => {
    const best = likeliest(answer)
    return [id, best && best.probability >= SURE_AT ? best.value : null]
  })
  return canonicalJson(Object.fromEntries(decided))
}

/** The answers in a reflex's reply. Without a value for each question, the model is asked. */
export function answersIn(reply: string, questions: DecisionQuestions): Result<{ answers: DecisionModelAnswers }, { detail: string }> {
  const values = jsonValue(reply)
  if (!isJsonFields(values)) return { ok: false, detail: 'the reply to a decision is a JSON object with a value for each question' }
  const answers: DecisionModelAnswers = {}
  for (const [id, question] of Object.entries(questions)) {
    const answer = answerWith(values[id], question)
    if (!answer) return { ok: false, detail: `the reply does not answer the question ${id}` }
    answers[id] = answer
  }
  return { ok: true, answers }
}

/** A reflex gives no probabilities of its own: all is on its value. */
function answerWith(value: unknown, question: DecisionQuestion): DecisionModelAnswer | null {
  switch (question.type) {
    case 'noul':
      return typeof value === 'boolean' ? { type: 'noul', noul: value ? 1 : 0 } : null
    case 'choice': {
      if (typeof value !== 'string' || !Object.hasOwn(question.criteria, value)) return null
      return { type: 'choice', choice: value, probabilities: allOn(value, Object.keys(question.criteria)) }
    }
    case 'score': {
      const levels = question.criteria.map((_, level) => String(level))
      if (typeof value !== 'number' || !levels.includes(String(value))) break
      const legend = Object.fromEntries(question.criteria.map((text, level) => [String(level), text]))
      return { type: 'score', score: value, probabilities: allOn(String(value), levels), legend }
    }
  }
  return null
}

const allOn = (value: string, names: readonly string[]) => Object.fromEntries(names.map((name) => [name, name === value ? 1 : 0]))
