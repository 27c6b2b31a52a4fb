import { expect, test } from 'vitest'
import { reflexLines, runLines } from '../../../../cli/learning/report.ts'
import type { LearnRun } from '../../../../cli/learning/lesson.ts'
import type { Api } from '../../../../cli/lib/api.ts'
import { plainPaint } from '../../../../cli/lib/paint.ts'

test('a reflex that acts is shown with its certificate, although a later run learned nothing', async () => {
  const candidate = (id: string, state: string) => ({ kind: 'reflex', id, version: '1', state, code: `// ${id}` })
  const answers: Record<string, unknown> = {
    '/v1/learn/runs/first': { candidates: [candidate('in-shadow', 'shadow'), candidate('acting', 'active')] },
    '/v1/learn/runs/second': { candidates: [] },
    '/v1/reflexes/acting': { certificates: [{ version: 1, why: ['It is proven.'] }] },
  }
  const api = { json: async (path: string) => answers[path] } as unknown as Api
  const runs = [{ run_id: 'first' }, { run_id: 'second' }] as LearnRun[]
  const lines = await reflexLines(api, runs, { columns: 100, paint: plainPaint })
  expect(lines).toEqual(['The reflex acting@1 is active', '  It is proven.', '', '  // acting'])
})

test('says of which run the refusals are: an earlier one may have learned the same decision', () => {
  const ran = (answer: string, rejected: object[]) => ({ answer, rejected }) as unknown as LearnRun
  const refused = { what: 'reply "Hello!"', reason: 'few newer events' }
  const lines = runLines([ran('1 learned.', []), ran('Nothing was learned.', [refused])], { columns: 80, paint: plainPaint })
  expect(lines.slice(-2)).toEqual(['What the last run did not learn, and why', '  reply "Hello!": few newer events'])
})
