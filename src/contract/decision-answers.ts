import { z } from 'zod'

/** JSON that the decision model reads: a text, an object or a list. */
const content = z.union([z.string().max(20_000), z.record(z.string(), z.unknown()), z.array(z.unknown())])
const description = content.nullable()
const instructions = description.optional().describe('The judgment to make, as a text or as JSON.')
const probability = z.number().min(0).max(1)
const name = z.string().min(1).max(128)

const MOST_QUESTIONS = 64
const MOST_OPTIONS = 255
const MOST_LEVELS = 10
const countOf = (fields: object): number => Object.keys(fields).length

const noulQuestion = z
  .strictObject({
    type: z.literal('noul'),
    instructions,
    criteria: z.strictObject({ true: description.optional(), false: description.optional() }).nullable().optional(),
  })
  .refine(
    ({ instructions: asked, criteria }) => [asked, criteria?.true, criteria?.false].some((text) => text !== null && text !== undefined),
    'a noul question needs instructions or criteria',
  )
const choiceQuestion = z.strictObject({
  type: z.literal('choice'),
  instructions,
  criteria: z
    .record(name, description)
    .refine((options) => countOf(options) >= 2 && countOf(options) <= MOST_OPTIONS, `a choice has 2 to ${MOST_OPTIONS} options`)
    .describe('The options, each with its description or null.'),
})
const scoreQuestion = z.strictObject({
  type: z.literal('score'),
  instructions,
  criteria: z.array(description).min(2).max(MOST_LEVELS).describe('The levels, lowest first.'),
})

/** `noul` is the name that the decisions APIs give to a yes-or-no question. */
export const question = z.discriminatedUnion('type', [noulQuestion, choiceQuestion, scoreQuestion])
export type DecisionQuestion = z.infer<typeof question>

export const questions = z
  .record(name, question)
  .refine((asked) => countOf(asked) >= 1 && countOf(asked) <= MOST_QUESTIONS, `a request has 1 to ${MOST_QUESTIONS} questions`)
export type DecisionQuestions = z.infer<typeof questions>

export const state = content.describe('What the questions are about: a text, or JSON.')

const confidence = z.number().optional().describe("The model's own statistic, if it gives one.")
const answer = z.discriminatedUnion('type', [
  z.object({ type: z.literal('noul'), noul: probability.describe('The probability of yes.') }),
  z.object({ type: z.literal('choice'), choice: z.string(), probabilities: z.record(z.string(), probability).optional(), confidence }),
  z.object({
    type: z.literal('score'),
    score: z.number().describe('The position on the scale; 0 is the lowest level.'),
    probabilities: z.record(z.string(), probability).optional().describe('By the index of the level.'),
    legend: z.record(z.string(), z.unknown()).optional(),
    confidence,
  }),
])
export type DecisionModelAnswer = z.infer<typeof answer>
export const answers = z.record(z.string(), answer)
export type DecisionModelAnswers = z.infer<typeof answers>

export const decisionRequest = z.strictObject({
  model: z.string().min(1).max(200).optional().describe("The model to ask, if the deployment's setting passes the name on."),
  state,
  questions,
})

export const decisionResponse = z
  .object({
    id: z.string().describe("The id of the decision's event in the scope."),
    model: z.string().describe('The model that answered, or `reflex/ID@VERSION`.'),
    answers,
    usage: z.object({ input_tokens: z.int(), output_tokens: z.int() }),
    reflex: z
      .object({
        by: z.enum(['model', 'reflex']),
        trace_id: z.string(),
        reflex_id: z.string().optional(),
        version: z.int().optional(),
      })
      .describe('Who answered. Beside the fields of the decisions API.'),
  })
  .meta({ id: 'DecisionResponse' })
