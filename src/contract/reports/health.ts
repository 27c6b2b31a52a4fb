import { z } from 'zod'

const at = z.iso.datetime().nullable()
export const modelCalls = z.object({
  status: z
    .enum(['answering', 'failing', 'silent', 'unknown'])
    .describe(
      '`answering`: the last call of every scope was answered. `failing`: the last calls of some scopes were not. ' +
        '`silent`: nobody was answered since, and events wait or failures are many. `unknown`: no call was made yet.',
    ),
  last_answer_at: at.describe('When a model answered last.'),
  failing_since: at.describe('The first failure without an answer since, in any scope.'),
  failures: z.int().describe('Calls that failed since the last answer of their scope.'),
  scopes_failing: z.int(),
  scopes_waiting: z.int().describe('Scopes whose events wait for the model: `GET /v1/scopes?state=model` lists them.'),
  asks_at: at.describe('When the first of them asks again.'),
  error: z.string().nullable().describe('The newest failure.'),
})
export type ModelCallReport = z.infer<typeof modelCalls>
