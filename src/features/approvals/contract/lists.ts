import type { z } from 'zod'
import type { Colour, ItemList } from '../../../contract/shown.ts'
import type { approval, ApprovalStatus } from '../../../contract/approval.ts'

type Shown = z.infer<typeof approval>

/** A payment is a call of a tool, which has no version. */
export const nameOf = ({ skill_id, version }: Pick<Shown, 'skill_id' | 'version'>): string =>
  version === '' ? skill_id : `${skill_id}@${version}`

const colours: Record<ApprovalStatus, Colour> = { pending: 'yellow', approved: 'green', rejected: 'red', expired: 'dim', withdrawn: 'dim' }

export const approvals = {
  at: 'get /v1/approvals',
  key: 'id',
  columns: [
    { title: 'Id', of: ({ id }) => id, only: 'terminal' },
    { title: 'Status', of: ({ status }) => status, kind: 'status', colour: ({ status }) => colours[status] },
    { title: 'Expires', of: ({ expires_at }) => expires_at, kind: 'time' },
    { title: 'Scope', of: ({ scope }) => scope, kind: 'scope' },
    { title: 'What', of: nameOf },
    { title: 'By', of: ({ requested_by }) => requested_by, only: 'terminal' },
    { title: 'Why', of: ({ why }) => why },
    { title: 'Inputs', of: ({ inputs }) => inputs, only: 'terminal' },
  ],
} as const satisfies ItemList<Shown>
