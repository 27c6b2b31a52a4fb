import { z } from 'zod'
import { scopeName } from '../../../core/event.ts'
import { approval, approvalStatus, approvalStatuses, decidedFor } from '../../../contract/approval.ts'
import { approvals, nameOf } from '../contract/lists.ts'
import { waitingWork } from '../../../contract/reports/waiting-work.ts'
import { operations } from '../../../contract/operation.ts'
import { byAge, paged, pageLimit } from '../../../contract/paging.ts'
import { byId, decidedById, reasonFlag, toolPage, toolScope } from '../../../contract/operations/shared.ts'

const operation = operations({ tag: 'Approvals', roles: ['operator'] })

export const list = operation(approvals.at, 'listApprovals', 'List approvals, newest first', {
  description: 'Pending and decided approvals in the scopes that the key covers.',
  query: byAge({ status: approvalStatus.optional(), scope: scopeName.optional() }),
  mcp: {
    name: 'approvals_waiting',
    title: 'Approvals that wait',
    description: 'Runs, promotions, activations and payments that wait for a person, with their inputs, newest first.',
    input: { scope: toolScope.optional(), ...toolPage },
    fixed: { status: 'pending' },
  },
  answers: { 200: [paged(approval), 'A page.'] },
  command: {
    usage: 'list',
    flags: [
      ['--status <status>', 'in one state', { choices: [...approvalStatuses, 'any'], standard: 'pending' }],
      ['--scope <scope>', 'of one scope'],
    ],
    asks: ({ status, ...rest }) => (status === 'any' ? rest : { ...rest, status }),
    table: {
      columns: approvals.columns,
      empty: 'No approval matches.',
    },
  },
})

export const find = operation('get /v1/approvals/{id}', 'getApproval', 'Get an approval', {
  ...byId(approval, 'The approval.'),
  command: {
    usage: 'show <id>',
    help: 'Show an approval with its inputs, and the run that followed',
    shows: ({ status, scope, requested_by, why, created_at, expires_at, decided_by, inputs, run, ...rest }) => [
      {
        what: nameOf(rest),
        status,
        scope,
        by: requested_by,
        why,
        created: created_at,
        expires: expires_at,
        'decided by': decided_by,
        inputs,
        run: run && `${run.status}${run.reason === null ? '' : `: ${run.reason}`}`,
        outputs: run && run.outputs,
      },
    ],
  },
})

const decision = <const Verb extends string>(verb: Verb, [summary, description, help]: readonly [string, string, string]) =>
  operation(`post /v1/approvals/{id}/${verb}`, `${verb}Run`, summary, {
    description,
    ...decidedById(approval, 'The updated approval.', decidedFor),
    takes: 'defaulted',
    example: { reason: 'checked with the team' },
    command: {
      usage: `${verb} <id>`,
      help,
      flags: [reasonFlag('for the log')],
      shows: (decided) => [`${nameOf(decided)} in ${decided.scope} is ${decided.status}.`],
    },
  })

export const approve = decision('approve', [
  'Approve a run of a skill',
  'Allows one run of that version with those inputs. The first decision wins; expired approvals cannot be decided. Four-eyes principle: the key that proposed the run ' +
    "cannot approve it, unless it has the role admin or the manifest's `policy.self_approval` allows it. Inactive versions cannot be approved, nor a reflex whose evidence has changed since it was shown. The body is optional.",
  'Allow one run of that version with those inputs',
])
export const reject = decision('reject', [
  'Reject a run of a skill',
  "The skill does not run, and the scope's log records the reason. The proposer may reject it to withdraw it. The body is optional.",
  'Do not run it',
])

export const listWaiting = operation('get /v1/waiting', 'listWaiting', 'List what waits for a person', {
  description:
    'Pending approvals and dead letters in the scopes that the key covers, newest first: ids, kinds, times and errors. ' +
    'Inputs, reasons and content are for keys with the role `operator`: `GET /v1/approvals`, `GET /v1/dlq`.',
  roles: ['viewer'],
  query: z.object({ scope: scopeName.optional().describe('Only of this scope.'), limit: pageLimit(100, 20) }),
  answers: { 200: [waitingWork, 'The newest of both.'] },
  mcp: {
    name: 'what_waits',
    title: 'What waits for a person',
    description: 'Pending approvals and dead letters, newest first: ids, kinds, times and errors, without inputs and content.',
    input: { scope: toolScope.optional(), limit: toolPage.limit },
  },
})
