import type { z } from 'zod'
import { decidedFor } from '../../../contract/approval.ts'
import { policyQuestion, policyVerdict, skillName } from '../../../contract/policy.ts'
import { newPromotion, promotion, promotionStatus, promotionStatuses, type PromotionStatus } from '../contract/promotion.ts'
import { operations, type CommandOf, type Resource } from '../../../contract/operation.ts'
import type { Colour, OperationFields } from '../../../contract/shown.ts'
import { byAge, paged } from '../../../contract/paging.ts'
import { byId, decidedById, reasonFlag } from '../../../contract/operations/shared.ts'

const operation = operations({ tag: 'Control plane', roles: ['operator'] })

const colours: Record<PromotionStatus, Colour> = { failed: 'red', pending: 'yellow', approved: 'green', rejected: 'red', expired: 'dim' }

const shows: CommandOf<z.infer<typeof promotion>>['shows'] = ({ reports, to_env, ...rest }) => [
  { ...rest, to_env: to_env.join(', ') },
  ...Object.entries(reports).flatMap(([env, { passed, unit, fuzz, failures }]) => [
    [
      `${env}: `,
      passed ? { colour: 'green' as const, text: 'passed' } : { colour: 'red' as const, text: 'failed' },
      `, ${unit.passed} of ${unit.n} unit cases, ${fuzz.passed} of ${fuzz.n} mutations, simulated`,
    ],
    ...failures.map(({ name, reason }) => `  ${name}: ${reason}`),
  ]),
]
const failed = ({ status }: { status: PromotionStatus }): boolean => status === 'failed'

/** The version of `id@version`, which a command takes. */
const versioned = {
  wrong: ({ ref }: OperationFields) => (String(ref).includes('@') ? null : 'Name a version, as in deploy.app@1.0.0.'),
  asks({ ref, ...rest }: OperationFields): OperationFields {
    const [skill_id, version] = String(ref).split('@')
    return { ...rest, skill_id, version }
  },
}

export const request = operation('post /v1/promotions', 'requestPromotion', 'Promote a version of a skill to other environments', {
  description:
    'Runs the tests of the skill as if in each of `to_env`: a simulation on the control plane, which calls no tool and reaches no environment. If all pass, the promotion waits for the approval of a second person; after that, the policy allows this version there. ' +
    "The version must be active, and must be allowed in `from_env`. The key must cover all scopes of the skill's owner. Every promotion is kept, with its reports and who decided.",
  body: newPromotion,
  example: { skill_id: 'network.block', version: '1.0.0', from_env: 'dev', to_env: ['staging'] },
  answers: { 201: [promotion, 'The promotion: `pending`, or `failed` with the reports.'] },
  problems: [404, 409],
  command: {
    usage: 'request <ref>',
    help: 'Test a version (id@version) as if in other environments, and ask a second person to approve',
    flags: [
      ['--from <env>', 'an environment in which it may run', { required: true, field: 'from_env' }],
      ['--to <envs...>', 'the environments to promote it to', { required: true, field: 'to_env' }],
      ['--reason <text>', 'why, for the second person'],
    ],
    ...versioned,
    shows,
    failed,
  },
})

export const list = operation('get /v1/promotions', 'listPromotions', 'List promotions, newest first', {
  description: 'Of skills whose owners may act in a scope of the key.',
  query: byAge({ status: promotionStatus.optional(), skill_id: skillName.optional().describe('Only of this skill.') }),
  answers: { 200: [paged(promotion), 'A page.'] },
  command: {
    usage: 'list',
    flags: [
      ['--status <status>', 'in one state', { choices: promotionStatuses }],
      ['--skill <id>', 'of one skill', { field: 'skill_id' }],
    ],
    table: {
      columns: [
        { title: 'ID', of: ({ id }) => id },
        { title: 'STATUS', of: ({ status }) => status, colour: ({ status }) => colours[status] },
        { title: 'CREATED', of: ({ created_at }) => created_at },
        { title: 'SKILL', of: ({ skill_id, version }) => `${skill_id}@${version}` },
        { title: 'FROM', of: ({ from_env }) => from_env },
        { title: 'TO', of: ({ to_env }) => to_env.join(', ') },
        { title: 'BY', of: ({ requested_by }) => requested_by },
        { title: 'DECIDED BY', of: ({ decided_by }) => decided_by },
      ],
      empty: 'No promotion matches.',
    },
  },
})

export const find = operation('get /v1/promotions/{id}', 'getPromotion', 'Get a promotion', {
  ...byId(promotion, 'The promotion with its reports.'),
  command: { usage: 'show <id>', help: 'Show a promotion with its reports', shows, failed },
})

const decision = <const Verb extends string>(verb: Verb, [summary, description, help]: readonly [string, string, string]) =>
  operation(`post /v1/promotions/{id}/${verb}`, `${verb}Promotion`, summary, {
    description,
    ...decidedById(promotion, 'The decided promotion.', decidedFor),
    takes: 'defaulted',
    example: { reason: 'the reports are fine' },
    command: {
      usage: `${verb} <id>`,
      help,
      flags: [reasonFlag()],
      shows: ({ skill_id, version, to_env, status }) => [`${skill_id}@${version} to ${to_env.join(', ')} is ${status}.`],
    },
  })

export const approve = decision('approve', [
  'Approve a promotion',
  'From then on the policy allows the version in these environments. It takes two people: the key that requested it cannot approve it, nor can another key of the same name, not even as an admin. ' +
    'The first decision wins. The body is optional.',
  'Let the version run in these environments; takes another person than the one who requested it',
])
export const reject = decision('reject', [
  'Reject a promotion',
  'The requester may reject it to withdraw it. The body is optional.',
  'Do not promote it',
])

export const check = operation('post /v1/policy/check', 'checkPolicy', 'Ask if a version of a skill may run', {
  description:
    "`needs_promotion`: the version is a candidate, or it was not promoted to an environment that needs a promotion. `deny`: it is deprecated, is for another environment or project, the roles are not among the manifest's, or one of " +
    'the given inputs is not allowed. Approvals, residency, and conditions that read the blackboard are left to the asker. A skill that the key may not read is treated as an unknown one: allowed in open environments only ' +
    '(`REFLEX_OPEN_ENVIRONMENTS`, by default `dev`). Nothing is stored.',
  roles: ['viewer'],
  body: policyQuestion,
  example: { skill_id: 'network.block', version: '1.0.0', project: 'shop', env: 'prod', roles: ['operator'] },
  answers: { 200: [policyVerdict, 'The verdict.'] },
  command: {
    usage: 'check <ref>',
    help: 'Ask if a version (id@version) may run; exits with 1 if not',
    flags: [
      ['--env <envs...>', 'the environments', { required: true }],
      ['--project <project>', 'the project'],
      ['--role <roles...>', 'the roles of whoever runs it', { field: 'roles' }],
    ],
    wrong: versioned.wrong,
    asks: (given) => versioned.asks({ roles: [], ...given }),
    shows: ({ verdict, reason }) => [[{ colour: verdict === 'allow' ? 'green' : 'red', text: verdict }, `  ${reason}`]],
    failed: ({ verdict }) => verdict !== 'allow',
  },
})

export const promotions: Resource = {
  noun: 'promotions',
  help: 'Promotions of skills to other environments',
  verbs: [list, find, request, approve, reject],
}
export const policy: Resource = { noun: 'policy', help: 'The policy of a control plane', verbs: [check] }
