import { z } from 'zod'
import { scopeName } from '../../../core/event.ts'
import { approval, approvalStatus, approvalStatuses, approvedFor, decidedFor, waitingStep } from '../../../contract/approval.ts'
import { approvals, nameOf } from '../contract/lists.ts'
import { waitingWork } from '../../../contract/reports/waiting-work.ts'
import { jsonValue, type Json, type JsonFields } from '../../../base/json.ts'
import { operations } from '../../../contract/operation.ts'
import type { PrintedValue } from '../../../contract/shown.ts'
import { byAge, paged, pageLimit } from '../../../contract/paging.ts'
import { byId, decidedById, reasonFlag, scopePath, toolPage, toolScope } from '../../../contract/operations/shared.ts'
import { offeredRule } from '../../../contract/offered-rule.ts'

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

export const listRules = operations({ tag: 'Approvals', roles: ['operator'], scoped: true })(
  'get /v1/scopes/{scope}/offered-rules',
  'listOfferedRules',
  'List rules that would have spared questions',
  {
    description:
      'Where people approved calls again and again whose destination stood in one kind of text, and rejected and edited none of them, ' +
      'a rule for `trusted_text` is offered, with its evidence. It looks at the newest decided questions. A person accepts a rule with its `patch`.',
    params: scopePath,
    answers: { 200: [z.object({ items: z.array(offeredRule) }), 'The rules.'] },
    command: {
      usage: 'rules <scope>',
      help: 'List rules that would have spared questions; `reflex scope set` accepts one',
      shows: ({ items }) =>
        items.length === 0
          ? ['No rule is offered: nothing was approved again and again.']
          : items.map(({ says, approved, values, patch }) => ({ rule: says, approved, values, patch })),
    },
  },
)

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

export const steps = operation('get /v1/approvals/{id}/steps', 'listWaitingSteps', 'List the steps of a run that waits', {
  description:
    'Each step with its arguments and what named them, as known before the run. Empty for other kinds of questions, and once the run was decided on.',
  ...byId(z.object({ items: z.array(waitingStep) }), 'The steps.'),
})

const shows = (decided: z.infer<typeof approval>): PrintedValue[] => [
  `${nameOf(decided)} in ${decided.scope} is ${decided.status}.`,
  ...(decided.edits ? [{ edits: decided.edits }] : []),
]

export const approve = operation('post /v1/approvals/{id}/approve', 'approveRun', 'Approve a run of a skill', {
  description:
    'Allows one run of that version with those inputs, or with inputs that `edits` changes. The first decision wins; expired approvals cannot be decided. Four-eyes principle: the key that proposed the run ' +
    "cannot approve it, unless it has the role admin or the manifest's `policy.self_approval` allows it. Inactive versions cannot be approved, nor a reflex whose evidence has changed since it was shown. The body is optional.",
  ...decidedById(approval, 'The updated approval.', approvedFor),
  takes: 'defaulted',
  example: { reason: 'checked with the team', edits: { to: 'team@example.com' } },
  command: {
    usage: 'approve <id>',
    help: 'Allow one run of that version with those inputs',
    flags: [
      reasonFlag('for the log'),
      [
        '--set <input=value>',
        'change an input first, such as to=team@example.com; a value may be JSON; repeatable',
        { field: 'edits', is: 'several' },
      ],
    ],
    wrong: ({ edits }) => (Object.hasOwn(editsOf(edits), '') ? 'Write an input as name=value, such as --set to=team@example.com.' : null),
    asks: ({ edits, ...rest }) => (edits === undefined ? rest : { ...rest, edits: editsOf(edits) }),
    shows,
  },
})
export const reject = operation('post /v1/approvals/{id}/reject', 'rejectRun', 'Reject a run of a skill', {
  description:
    "The skill does not run, and the scope's log records the reason. The proposer may reject it to withdraw it. The body is optional.",
  ...decidedById(approval, 'The updated approval.', decidedFor),
  takes: 'defaulted',
  example: { reason: 'checked with the team' },
  command: { usage: 'reject <id>', help: 'Do not run it', flags: [reasonFlag('for the log')], shows },
})

/** Inputs as a command line has them. One without a name stands for what is not `name=value`. */
function editsOf(written: unknown): JsonFields {
  const pairs = Array.isArray(written) ? written.map(String) : []
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = Math.max(0, pair.indexOf('='))
      const text = pair.slice(at + 1)
      const value = jsonValue(text) as Json | undefined
      return [pair.slice(0, at), value === undefined ? text : value]
    }),
  )
}

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
