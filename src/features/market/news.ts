import type { OutboxItem } from '../../kernel/outbox.ts'
import type { Env } from '../../env.ts'
import { scopeOfOwner } from '../../contract/reflex.ts'
import type { MarketEvent, MarketView } from './contract/view.ts'
import { AGENT_IDS, type Transfer } from './contract/transfer.ts'
import type { Ledger } from './ledger/ledger.ts'
import type { MarketOutbox } from './room.ts'

/** The topic of events for scopes; each scope has its own, so that none waits for another. */
export const SCOPE_NEWS = 'scope-news'
/** `event` is null if only the scope's view has changed. */
type ScopeNews = { scope: string; event: MarketEvent | null }

/** Notifies the accounts among these that are scopes, and pushes their views. */
export function notifyAccounts(outbox: MarketOutbox, accounts: readonly string[], event: MarketEvent | null): void {
  for (const account of new Set(accounts)) {
    const scope = scopeOfOwner(account)
    if (scope !== null) outbox.put(`${SCOPE_NEWS} ${scope}`, event?.id ?? 'view', { scope, event } satisfies ScopeNews)
  }
}

/** The side that acted knows of it: only its view is pushed, so that its event starts no turn. */
export function notifyOthers(
  outbox: MarketOutbox,
  sides: readonly string[],
  { by, event }: { by: string | undefined; event: MarketEvent },
): void {
  for (const side of sides) notifyAccounts(outbox, [side], side === by ? null : event)
}

/** Sends the events of one scope with its view as of now. */
export async function sendNews(items: readonly OutboxItem[], env: Env, view: (scope: string) => MarketView): Promise<void> {
  const news = items.map(({ value }) => value as ScopeNews)
  const scope = news[0]?.scope
  if (scope === undefined) return
  const events = news.flatMap(({ event }) => event ?? [])
  const { accepted } = await env.SCOPE.getByName(scope).marketChanged(view(scope), events)
  if (!accepted) throw new Error(`the inbox of scope ${scope} is full`)
}

const PAGE = 500

/** Writes the messages about transfers that have none yet. Both sides get new views. */
export function newsOfTransfers(ledger: Ledger, outbox: MarketOutbox): void {
  for (;;) {
    const { items } = ledger.history({ after: String(ledger.mark('news')), limit: PAGE })
    const last = items.at(-1)
    if (!last) return
    for (const transfer of items) notifyOf(outbox, transfer)
    ledger.setMark('news', last.seq)
  }
}

/** Money that is only reserved, or returns, changes the views alone. */
function notifyOf(outbox: MarketOutbox, { seq, id, kind, debit, credit, amount, code, memo }: Transfer): void {
  const moved = (kind === 'single' || kind === 'post') && amount > 0
  const event = { id: `transfer:${seq}`, type: 'transfer' as const, from: debit, to: credit, amount, code, memo, transfer_id: id }
  notifyAccounts(outbox, [credit], moved ? event : null)
  // A scope knows the payments that its own tools make.
  notifyAccounts(outbox, [debit], moved && !id.startsWith(AGENT_IDS) ? event : null)
}
