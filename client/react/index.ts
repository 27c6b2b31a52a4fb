import { useMemo, useSyncExternalStore } from 'react'
import type { ApprovalStatus } from '../../src/contract/approval.ts'
import type { ReflexState } from '../../src/contract/reflex.ts'
import type { ListedReflex, Reflex } from '../reflex.ts'
import type { Approval, Scope } from '../scope.ts'
import { storeOf, type ScopeActions, type ScopeView } from './scope-store.ts'

export type ListView<Item> = { items: readonly Item[]; error: Error | null; is_loading: boolean }

/** A list that is read again at an interval while somebody looks. */
class ListStore<Item> {
  readonly #read: () => Promise<readonly Item[]>
  readonly #every_ms: number
  readonly #listeners = new Set<() => void>()
  #timer: ReturnType<typeof setTimeout> | undefined
  #view: ListView<Item> = { items: [], error: null, is_loading: true }

  constructor(read: () => Promise<readonly Item[]>, every_ms: number) {
    this.#read = read
    this.#every_ms = every_ms
  }

  readonly view = (): ListView<Item> => this.#view

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    if (this.#listeners.size === 1) void this.refresh()
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) clearTimeout(this.#timer)
    }
  }

  readonly refresh = async (): Promise<void> => {
    clearTimeout(this.#timer)
    const view = await this.#read().then(
      (items) => ({ items, error: null, is_loading: false }),
      (error: unknown) => ({ ...this.#view, error: error instanceof Error ? error : new Error(String(error)), is_loading: false }),
    )
    this.#view = view
    for (const listener of this.#listeners) listener()
    clearTimeout(this.#timer)
    if (this.#listeners.size > 0) this.#timer = setTimeout(() => void this.refresh(), this.#every_ms)
  }
}

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

type ApprovalsQuery = { status?: ApprovalStatus; scope?: string; every_ms?: number }
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

type ReflexesQuery = { state?: ReflexState; owner?: string; q?: string; every_ms?: number }

/** The reflexes that the key may read, the newest version of each. */
export function useReflexes(reflex: Reflex, query: ReflexesQuery = {}): LiveList<ListedReflex> {
  const { every_ms = EVERY_MS, ...filter } = query
  const read = async () => (await reflex.reflexes(filter)).items
  return useList(read, [reflex, filter.state, filter.owner, filter.q], every_ms)
}
