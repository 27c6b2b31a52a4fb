import { z } from 'zod'
import { scopeName } from '../../../core/event.ts'
import { runs } from '../contract/lists.ts'
import { operations } from '../../../contract/operation.ts'
import { byAge, paged, pageLimit } from '../../../contract/paging.ts'
import { evidenceParts, evidencePlace, learnRequest, learnRun, listedRun, runStatus, startedRun } from '../contract/runs.ts'
import { byId, idPath } from '../../../contract/operations/shared.ts'

const operation = operations({ tag: 'Learning', roles: ['viewer'] })

export const start = operation('post /v1/learn', 'startLearning', 'Learn from the decisions of a scope', {
  description:
    'Starts a run, which reads what turns and people have decided since the last run, and writes reflexes and skills that decide the same. A reflex is registered in shadow mode; it acts ' +
    'once later decisions have proven it, as the setting `learning.mode` allows. A skill that passes its tests is registered as a candidate, which a person activates. A scope learns once at a time: a further request answers with the run that has begun. ' +
    'Reading and learning happen beside the scope and do not delay its events.',
  roles: ['operator'],
  body: learnRequest,
  example: { scope: 'ssh/web-1', window: 10_000 },
  answers: { 202: [startedRun, 'The run.'] },
  problems: [503],
})

export const list = operation(runs.at, 'listLearnRuns', 'List runs of learning, newest first', {
  description: 'The runs of the scopes that the key covers, without what they found.',
  query: byAge({ scope: scopeName.optional(), status: runStatus.optional() }),
  answers: { 200: [paged(listedRun), 'A page.'] },
  command: {
    usage: 'runs',
    help: 'List runs, newest first',
    flags: [
      ['--scope <scope>', 'of one scope'],
      ['--status <status>', 'with one status', { choices: ['running', 'done', 'failed'] }],
    ],
    table: {
      columns: runs.columns,
      empty: 'No run matches.',
    },
  },
})

export const find = operation('get /v1/learn/runs/{id}', 'getLearnRun', 'Get a run of learning', {
  description:
    'Its progress; what it found, with the evidence for it and the traces of examples; and what it rejected, with the reasons. While it runs, the progress is up to 2 s old.',
  ...byId(learnRun, 'The run.'),
})

export const evidence = operation('get /v1/learn/runs/{id}/evidence', 'getLearnEvidence', 'Get the decisions behind a number', {
  description:
    'The decisions that a candidate was learned from (`train`), and the newer ones that what was learned from the older ones would have decided: `agreed` and `differed`. A skill has the turns that contain its sequence, as `train`. ' +
    'Kept for the last ten runs of a scope.',
  params: idPath,
  query: z.object({
    candidate: z.string().min(1).max(200).describe('Its id.'),
    part: z.enum(evidenceParts).default('train').describe('`held_out.covered` is the sum of `agreed` and `differed`.'),
    limit: pageLimit(1000),
    cursor: z.coerce.number<string>().int().min(0).default(0),
  }),
  answers: { 200: [paged(evidencePlace), 'A page, oldest first.'] },
  problems: [404],
})
