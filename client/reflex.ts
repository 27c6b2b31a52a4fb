import type { z } from 'zod'
import type { approval, ApprovalStatus } from '../src/contract/approval.ts'
import type { listedReflex, ReflexState } from '../src/contract/reflex.ts'
import type { scopeSummary } from '../src/contract/scope.ts'
import { apiOf, askOf, type ApiCall, type AskApi, type ReflexOptions } from './api.ts'
import { Scope, type Approval, type Page } from './scope.ts'

export type ListedReflex = z.infer<typeof listedReflex>
type Paged = { limit?: number; cursor?: string }

/** A deployment, as a client with one key sees it. */
export class Reflex {
  readonly #options: ReflexOptions & { connection_id?: string }
  readonly #scopes = new Map<string, Scope>()
  /** For routes that this client has no method for, as the reference names them. */
  readonly ask: AskApi
  /** For paths. */
  readonly request: ApiCall

  constructor(options: ReflexOptions & { connection_id?: string }) {
    this.#options = options
    this.request = apiOf(options)
    this.ask = askOf(this.request)
  }

  /** The same object for the same name, so that its socket is shared. */
  scope(name: string): Scope {
    const known = this.#scopes.get(name) ?? new Scope({ ...this.#options, scope: name })
    this.#scopes.set(name, known)
    return known
  }

  scopes(query: Paged = {}): Promise<Page<z.infer<typeof scopeSummary>>> {
    return this.ask('get /v1/scopes', query)
  }

  approvals(query: Paged & { status?: ApprovalStatus; scope?: string } = {}): Promise<Page<z.infer<typeof approval>>> {
    return this.ask('get /v1/approvals', query)
  }

  respond(approval_id: string, decision: 'approve' | 'reject', reason?: string): Promise<Approval> {
    return this.ask(`post /v1/approvals/{id}/${decision}`, { id: approval_id, reason })
  }

  reflexes(query: Paged & { owner?: string; state?: ReflexState; q?: string } = {}): Promise<Page<ListedReflex>> {
    return this.ask('get /v1/reflexes', query)
  }
}
