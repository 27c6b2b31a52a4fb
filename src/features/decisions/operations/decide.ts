import { z } from 'zod'
import { limits } from '../../../base/limits.ts'
import { operations } from '../../../contract/operation.ts'
import { scopePath } from '../../../contract/operations/shared.ts'
import { decisionRequest, decisionResponse } from '../../../contract/decision-answers.ts'

const WAIT_MS = 10_000

export const decide = operations({ tag: 'Scopes', roles: ['publisher'], scoped: true })(
  'post /v1/scopes/{scope}/decisions',
  'decide',
  'Answer typed questions about a state',
  {
    description:
      'The decisions API of the providers of decision models: `choice`, `noul` (yes or no) and `score` questions about one state, each answered with ' +
      'probabilities. The scope forwards the request to its decision model and logs it. A reflex that is active in the scope may answer instead; ' +
      'its answer puts all probability on one value. docs/decision-models.md has more. With `Idempotency-Key`, a repeated request gets the first answer; ' +
      'a decision that failed is asked again.',
    params: scopePath,
    headers: z.object({
      'idempotency-key': z
        .string()
        .min(1)
        .max(256)
        .optional()
        .describe('Identifies the request among those of your key, so that it can be repeated.'),
    }),
    query: z.object({
      timeout_ms: z.coerce.number<string>().int().min(1).max(limits.wait_ms).default(WAIT_MS).describe('Maximum wait for the answer.'),
    }),
    body: decisionRequest,
    example: {
      model: 'jev-latest',
      state: 'I was charged twice.',
      questions: {
        team: {
          type: 'choice',
          instructions: 'Who handles this?',
          criteria: { billing: 'Charges and refunds', support: 'Other requests' },
        },
        refund: { type: 'noul', instructions: 'Does the customer ask for money back?' },
      },
    },
    answers: { 200: [decisionResponse, 'The answers.'] },
    problems: [409, 502, 504],
  },
)
