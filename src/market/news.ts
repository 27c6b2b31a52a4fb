import type { Env } from '../env.ts'
import { scopeOfOwner } from '../contract/reflex.ts'
import type { MarketEvent, MarketView } from '../contract/market/view.ts'
import type { Item } from './outbox.ts'
import type { Parts } from './room.ts'

/** The topic of events for scopes; each scope has its own, so that none waits for another. */
export const SCOPE_NEWS = 'scope-news'
/** `event` is null if only the scope's view has changed. */
type ScopeNews = { scope: string; event: MarketEvent | null }

/** Notifies the accounts among these that are scopes, and pushes their views. */
export function notifyAccounts(outbox: Parts['outbox'], accounts: readonly string[], event: MarketEvent | null): void {
  for (const account of new Set(accounts)) {
    const scope = scopeOfOwner(account)
    if (scope !== null) outbox.put(`${SCOPE_NEWS} ${scope}`, event?.id ?? 'view', { scope, event } satisfies ScopeNews)
  }
}

/** Sends the events of one scope with its view as of now. */
export async function sendNews(items: readonly Item[], env: Env, view: (scope: string) => MarketView): Promise<void> {
  const news = items.map(({ value }) => value as ScopeNews)
  const scope = news[0]?.scope
  if (scope === undefined) return
  const events = news.flatMap(({ event }) => event ?? [])
  const { accepted } = await env.SCOPE.getByName(scope).marketChanged(view(scope), events)
  if (!accepted) throw new Error(`the inbox of scope ${scope} is full`)
}
