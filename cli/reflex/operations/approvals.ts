import { Option, type Command } from 'commander'
import type { z } from 'zod'
import { approvalStatuses, type approval, type ApprovalStatus } from '../../../src/contract/control-plane/approval.ts'
import type { Colour } from '../../lib/paint.ts'
import { pages, route } from '../pages.ts'
import type { Page } from '../printer.ts'
import { handler, type Session } from '../session.ts'
import { openStandalone } from '../standalone-file.ts'
import { fields, safeJson, written, type Column } from '../table.ts'
import { limitOption } from '../values.ts'

type Approval = z.infer<typeof approval>
type Filter = { status: ApprovalStatus | 'any'; scope?: string; limit: number; file?: string }
/** Its inputs may hold secrets, so they are not shown. */
type Waiting = { approval_id: string; skill_id: string; version: string }

/** A payment is a call of a tool, which has no version. */
function nameOf({ skill_id, version }: Pick<Approval, 'skill_id' | 'version'>): string {
  return version === '' ? skill_id : `${skill_id}@${version}`
}

const colours: Record<ApprovalStatus, Colour> = { pending: 'yellow', approved: 'green', rejected: 'red', expired: 'dim', withdrawn: 'dim' }
const columns: Column<Approval>[] = [
  { title: 'ID', of: ({ id }) => id },
  { title: 'STATUS', of: ({ status }) => status, colour: ({ status }) => colours[status] },
  { title: 'EXPIRES', of: ({ expires_at }) => expires_at },
  { title: 'SCOPE', of: ({ scope }) => scope },
  { title: 'WHAT', of: nameOf },
  { title: 'BY', of: ({ requested_by }) => requested_by },
  { title: 'WHY', of: ({ why }) => why },
  { title: 'INPUTS', of: ({ inputs }) => safeJson(inputs) },
]

const waitingColumns: Column<Waiting>[] = [
  { title: 'ID', of: ({ approval_id }) => approval_id },
  { title: 'SKILL', of: nameOf },
]

async function waitingIn(file: string): Promise<Page<Waiting>> {
  const { approvals } = await openStandalone(file)
  const items = approvals.waiting().map(({ approval_id, skill_id, version }) => ({ approval_id, skill_id, version }))
  return { items, next_cursor: null }
}

export function addApprovals(program: Command): void {
  const approvals = program.command('approvals').description('Runs of skills that wait for a decision')
  approvals
    .command('list')
    .description('List approvals, newest first')
    .addOption(new Option('--status <status>', 'in one state').choices([...approvalStatuses, 'any']).default('pending'))
    .option('--scope <scope>', 'of one scope')
    .addOption(limitOption())
    .option('--file <path>', 'the file of a standalone process, which lists those that wait')
    .action(
      handler(async ({ api, print, signal }, { limit, status, scope, file }: Filter) => {
        if (file !== undefined) return print.page(await waitingIn(file), waitingColumns, 'No run waits for approval.')
        const query = { scope, status: status === 'any' ? undefined : status }
        print.page(
          await pages<Approval>(api(), { parts: ['approvals'], query, limit, most: 1000, signal }),
          columns,
          'No approval matches.',
        )
      }),
    )
  approvals.command('show <id>').description('Show an approval with its inputs, and the run that followed').action(handler(show))
  for (const [verb, description] of [
    ['approve', 'Allow one run of that version with those inputs'],
    ['reject', 'Do not run it'],
  ] as const) {
    approvals
      .command(`${verb} <id>`)
      .description(description)
      .option('--reason <text>', 'why, for the log')
      .action(
        handler(async ({ api, print, signal }, id: string, { reason }: { reason?: string }) => {
          const body = reason === undefined ? {} : { reason }
          const decided = await api().json<Approval>(route(['approvals', id, verb]), { method: 'POST', body, signal })
          print.result(decided, () => [`${written(nameOf(decided))} in ${written(decided.scope)} is ${decided.status}.`])
        }),
      )
  }
}

async function show({ api, print, signal }: Session, id: string): Promise<void> {
  const found = await api().json<Approval>(route(['approvals', id]), { signal })
  const { status, scope, requested_by, why, created_at, expires_at, decided_by, inputs, run } = found
  print.result(found, (paint) =>
    fields(
      {
        what: nameOf(found),
        status,
        scope,
        by: requested_by,
        why,
        created: created_at,
        expires: expires_at,
        'decided by': decided_by,
        inputs: safeJson(inputs),
        run: run && `${run.status}${run.reason === null ? '' : `: ${run.reason}`}`,
        outputs: run && safeJson(run.outputs),
      },
      paint,
    ),
  )
}
