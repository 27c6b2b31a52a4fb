import { Option, type Command } from 'commander'
import type { z } from 'zod'
import type { policyVerdict } from '../../../src/contract/control-plane/policy.ts'
import { promotionStatuses, type promotion, type PromotionStatus } from '../../../src/contract/control-plane/promotion.ts'
import { UsageError } from '../../lib/cli-error.ts'
import type { Colour } from '../../lib/paint.ts'
import { pages, route } from '../pages.ts'
import { handler, type Outcome, type Session } from '../session.ts'
import { fields, written, type Column } from '../table.ts'
import { limitOption } from '../values.ts'

type Promotion = z.infer<typeof promotion>
type Verdict = z.infer<typeof policyVerdict>

const colours: Record<PromotionStatus, Colour> = { failed: 'red', pending: 'yellow', approved: 'green', rejected: 'red', expired: 'dim' }
const columns: Column<Promotion>[] = [
  { title: 'ID', of: ({ id }) => id },
  { title: 'STATUS', of: ({ status }) => status, colour: ({ status }) => colours[status] },
  { title: 'CREATED', of: ({ created_at }) => created_at },
  { title: 'SKILL', of: ({ skill_id, version }) => `${skill_id}@${version}` },
  { title: 'FROM', of: ({ from_env }) => from_env },
  { title: 'TO', of: ({ to_env }) => to_env.join(', ') },
  { title: 'BY', of: ({ requested_by }) => requested_by },
  { title: 'DECIDED BY', of: ({ decided_by }) => decided_by },
]

export function addPromotions(program: Command): void {
  const promotions = program.command('promotions').description('Promotions of skills to other environments')
  promotions
    .command('list')
    .description('List promotions, newest first')
    .addOption(new Option('--status <status>', 'in one state').choices([...promotionStatuses]))
    .option('--skill <id>', 'of one skill')
    .addOption(limitOption())
    .action(
      handler(async ({ api, print, signal }, { limit, status, skill: skill_id }: { limit: number; status?: string; skill?: string }) => {
        const listed = await pages<Promotion>(api(), { parts: ['promotions'], query: { status, skill_id }, limit, most: 1000, signal })
        print.page(listed, columns, 'No promotion matches.')
      }),
    )
  promotions
    .command('show <id>')
    .description('Show a promotion with its reports')
    .action(
      handler(async ({ api, print, signal }, id: string) =>
        shown(print, await api().json<Promotion>(route(['promotions', id]), { signal })),
      ),
    )
  promotions
    .command('request <ref>')
    .description('Test a version (id@version) as if in other environments, and ask a second person to approve')
    .requiredOption('--from <env>', 'an environment in which it may run')
    .requiredOption('--to <envs...>', 'the environments to promote it to')
    .option('--reason <text>', 'why, for the second person')
    .action(handler(request))
  for (const [verb, description] of [
    ['approve', 'Let the version run in these environments; takes another person than the one who requested it'],
    ['reject', 'Do not promote it'],
  ] as const) {
    promotions
      .command(`${verb} <id>`)
      .description(description)
      .option('--reason <text>', 'why, for the record')
      .action(
        handler(async ({ api, print, signal }, id: string, { reason }: { reason?: string }) => {
          const body = reason === undefined ? {} : { reason }
          const decided = await api().json<Promotion>(route(['promotions', id, verb]), { method: 'POST', body, signal })
          print.result(decided, () => [
            `${written(decided.skill_id)}@${written(decided.version)} to ${written(decided.to_env.join(', '))} is ${decided.status}.`,
          ])
        }),
      )
  }
}

export function addPolicy(program: Command): void {
  program
    .command('policy')
    .description('The policy of a control plane')
    .command('check <ref>')
    .description('Ask if a version (id@version) may run; exits with 1 if not')
    .requiredOption('--env <envs...>', 'the environments')
    .option('--project <project>', 'the project')
    .option('--role <roles...>', 'the roles of whoever runs it')
    .action(handler(check))
}

type Request = { from: string; to: string[]; reason?: string }

async function request({ api, print, signal }: Session, ref: string, { from: from_env, to: to_env, reason }: Request): Promise<Outcome> {
  const body = { ...versionIn(ref), from_env, to_env, ...(reason !== undefined && { reason }) }
  return shown(print, await api().json<Promotion>(route(['promotions']), { method: 'POST', body, signal }))
}

type Check = { env: string[]; project?: string; role?: string[] }

async function check({ api, print, signal }: Session, ref: string, { env, project, role: roles = [] }: Check): Promise<Outcome> {
  const body = { ...versionIn(ref), env, roles, ...(project !== undefined && { project }) }
  const { verdict, reason } = await api().json<Verdict>(route(['policy', 'check']), { method: 'POST', body, signal })
  print.result({ verdict, reason }, (paint) => [`${paint(verdict === 'allow' ? 'green' : 'red', verdict)}  ${written(reason)}`])
  return verdict === 'allow' ? undefined : 1
}

function shown(print: Session['print'], found: Promotion): Outcome {
  const { reports, to_env, ...rest } = found
  print.result(found, (paint) => [
    ...fields({ ...rest, to_env: to_env.join(', ') }, paint),
    ...Object.entries(reports).flatMap(([env, { passed, unit, fuzz, failures }]) => [
      `${written(env)}: ${passed ? paint('green', 'passed') : paint('red', 'failed')}, ` +
        `${unit.passed} of ${unit.n} unit cases, ${fuzz.passed} of ${fuzz.n} mutations, simulated`,
      ...failures.map(({ name, reason }) => `  ${written(name)}: ${written(reason)}`),
    ]),
  ])
  return found.status === 'failed' ? 1 : undefined
}

function versionIn(ref: string): { skill_id: string; version: string } {
  const [skill_id = '', version] = ref.split('@')
  if (version === undefined) throw new UsageError('Name a version, as in deploy.app@1.0.0.')
  return { skill_id, version }
}
