import { z } from 'zod'
import { actionSchema } from '../../../contract/action.ts'
import { question } from '../../../contract/decision-answers.ts'

const name = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,63}$/, 'a name is 1 to 64 characters of a-z 0-9 . _ -, and begins with a letter or digit')

/** `escalate` would be the same as no action; the others concern reflexes. */
const LEFT_OUT = new Set(['escalate', 'cancel_turn', 'write_artifact', 'invoke_artifact'])

export const decisionModelSetting = z
  .strictObject({
    name: name.describe('The name of the decision in the log and in its certificate.'),
    model: z.string().min(1).max(200).optional().describe('A decision model, as in `REFLEX_DECISION_MODEL`, which is the default.'),
    types: z.array(z.string().min(1).max(128)).min(1).max(50).optional().describe('The types of events that it decides. Unset: all.'),
    question,
    actions: z
      .record(z.string().min(1).max(128), actionSchema)
      .describe(
        'The action for each answer: by the option of a `choice`, by `true` and `false`, or by the index of a level. `{{field}}` is a field of the event. ' +
          'An answer without an action leaves the event to the turn.',
      ),
    threshold: z
      .number()
      .min(0.5)
      .max(1)
      .optional()
      .describe(
        'It acts on answers of at least this probability, as you decided. Unset: the threshold is chosen from decisions and proven first. ' +
          'Calls that can be neither undone nor repeated are left to the turn all the same, unless a person allowed them.',
      ),
  })
  .refine(
    ({ question: asked, actions }) => Object.keys(actions).every((answer) => isAnswer(answer, asked)),
    'actions are named by answers of the question',
  )
  .refine(
    ({ actions }) => Object.values(actions).every(({ action_type }) => !LEFT_OUT.has(action_type)),
    `an action must not be ${Array.from(LEFT_OUT).join(', ')}`,
  )
export type DecisionModelSetting = z.infer<typeof decisionModelSetting>

function isAnswer(answer: string, asked: z.infer<typeof question>): boolean {
  if (asked.type === 'noul') return answer === 'true' || answer === 'false'
  if (asked.type === 'choice') return Object.hasOwn(asked.criteria, answer)
  return asked.criteria.some((_, level) => String(level) === answer)
}
