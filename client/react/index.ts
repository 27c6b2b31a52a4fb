import { useMemo, useSyncExternalStore } from 'react'
import type { ApprovalStatus } from '../../src/contract/approval.ts'
import type { ReflexState } from '../../src/contract/reflex.ts'
import type { ListedReflex, Reflex } from '../reflex.ts'
import type { Approval, Scope } from '../scope.ts'
import { ListStore, type ListView } from './list-store.ts'
import { storeOf, type ScopeActions, type ScopeView } from './scope-store.ts'

export type { ListView } from './list-store.ts'
export type { ScopeActions, ScopeEvent, ScopeView } from './scope-store.ts'

/**
 * Follows a scope. All components with the same scope object share its socket. `stop` cancels the
 * turn in flight; unmounting only leaves.
 */
export function useScope(scope: Scope): ScopeView & ScopeActions {
  const store = storeOf(scope)
  const view = useSyncExternalStore(store.subscribe, store.view, store.view)
  return { ...view, ...store.actions }
}

type LiveList<Item> = ListView<Item> & { refresh: () => Promise<void> }
const EVERY_MS = 5000

function useList<Item>(read: () => Promise<readonly Item[]>, dependencies: readonly unknown[], every_ms: number): LiveList<Item> {
  // oxlint-disable-next-line react-hooks/exhaustive-deps -- `read` is a new function on each render
  const store = useMemo(() => new ListStore(read, every_ms), [...dependencies, every_ms])
  const view = useSyncExternalStore(store.subscribe, store.view, store.view)
  return { ...view, refresh: store.refresh }
}

export type ApprovalsQuery = { status?: ApprovalStatus; scope?: string; every_ms?: number }
type Respond = { respond: (approval_id: string, decision: 'approve' | 'reject', reason?: string) => Promise<void> }

/** Approvals in all scopes that the key covers: those that wait, unless `status` differs. */
export function useApprovals(reflex: Reflex, query: ApprovalsQuery = {}): LiveList<Approval> & Respond {
  const { status = 'pending', scope, every_ms = EVERY_MS } = query
  const read = async () => (await reflex.approvals({ status, ...(scope !== undefined && { scope }) })).items
  const list = useList(read, [reflex, status, scope], every_ms)
  return {
    ...list,
    respond: async (approval_id, decision, reason) => {
      await reflex.respond(approval_id, decision, reason)
      await list.refresh()
    },
  }
}

export type ReflexesQuery = { state?: ReflexState; owner?: string; q?: string; every_ms?: number }

/** The reflexes that the key may read, the newest version of each. */
export function useReflexes(reflex: Reflex, query: ReflexesQuery = {}): LiveList<ListedReflex> {
  const { every_ms = EVERY_MS, ...filter } = query
  const read = async () => (await reflex.reflexes(filter)).items
  return useList(read, [reflex, filter.state, filter.owner, filter.q], every_ms)
}
