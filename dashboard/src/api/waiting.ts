import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { changes } from './request.ts'
import { hasRole } from './session.ts'
import { useGet } from './use-get.ts'

type Approvals = { items: { id: string; expires_at: string }[]; next_cursor: string | null }
type Letters = { items: { id: string }[]; next_cursor: string | null }
type Waiting = { approvals: Approvals | undefined; letters: Letters | undefined }

const MOST = 100
const EVERY_MS = 10_000

/** The work that waits for a person: the menu and the first page show it. */
export const waiting = signal<Waiting>({ approvals: undefined, letters: undefined })

/** Asks for it again and again, and after each change that this page makes. It shows nothing. */
export function Watch() {
  const mayDecide = hasRole('operator')
  const approvals = useGet<Approvals>(mayDecide ? `/v1/approvals?status=pending&limit=${MOST}` : null, { every_ms: EVERY_MS })
  const letters = useGet<Letters>(mayDecide ? `/v1/dlq?limit=${MOST}` : null, { every_ms: EVERY_MS })
  useEffect(() => void (waiting.value = { approvals: approvals.value, letters: letters.value }), [approvals.value, letters.value])
  const changed = changes.value
  useEffect(() => {
    if (changed > 0) for (const { reload } of [approvals, letters]) reload()
  }, [changed])
  return null
}

type Counted = { items: readonly object[]; next_cursor: string | null }
/** `12`, or `100+` if more than a page waits. Empty if nothing does. */
export function badgeOf(...lists: readonly (Counted | undefined)[]): string {
  const known = lists.filter((list) => list !== undefined)
  const sum = known.reduce((all, { items }) => all + items.length, 0)
  return sum === 0 ? '' : `${sum}${known.some(({ next_cursor }) => next_cursor !== null) ? '+' : ''}`
}
