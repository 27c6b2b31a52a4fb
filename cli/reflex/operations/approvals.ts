import type { Command } from 'commander'
import { nameOf } from '../../../src/features/approvals/contract/lists.ts'
import { approve, find, list, listRules, reject } from '../../../src/features/approvals/operations/approvals.ts'
import { addNoun, addOperation } from '../operation.ts'
import type { Page } from '../../../src/contract/scope-api.ts'
import { openStandalone } from '../standalone-file.ts'
import type { Column } from '../table.ts'

/** Its inputs may hold secrets, so they are not shown. */
type Waiting = { approval_id: string; skill_id: string; version: string }

const columns: Column<Waiting>[] = [
  { title: 'ID', of: ({ approval_id }) => approval_id },
  { title: 'SKILL', of: nameOf },
]

async function waitingIn(file: string): Promise<Page<Waiting>> {
  const { approvals } = await openStandalone(file)
  const items = approvals.waiting().map(({ approval_id, skill_id, version }) => ({ approval_id, skill_id, version }))
  return { items, next_cursor: null }
}

export function addApprovals(program: Command): void {
  const approvals = addNoun(program, { noun: 'approvals', help: 'Runs of skills that wait for a decision' })
  addOperation(approvals, list, async ({ print }, { file }) => {
    if (file !== undefined) print.page(await waitingIn(file), columns, 'No run waits for approval.')
    return file !== undefined
  }).option('--file <path>', 'the file of a standalone process, which lists those that wait')
  for (const op of [find, approve, reject, listRules]) addOperation(approvals, op)
}
