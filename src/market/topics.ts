import type { Env } from '../env.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { copyLedger } from '../store/market/ledger.ts'
import type { SentDeal } from './deals/notify.ts'
import { deliver } from './goods/deliver.ts'
import { writeListings, type ListingCopy } from '../store/market/listings.ts'
import { storeOf } from '../store/store.ts'
import type { MarketView } from '../contract/market/view.ts'
import { SCOPE_NEWS, newsOfTransfers, sendNews } from './news.ts'
import { SentInPart, type Item, type Outbox, type Source, type Topics } from './outbox.ts'

const PAGE = 500

/** The functions that send the topics of the outbox. Each is idempotent. */
export const topicsOf = (ledger: Ledger, view: (scope: string) => MarketView): Topics => ({
  [SCOPE_NEWS]: (items, env) => sendNews(items, env, view),
  /** Accounts that changed without a transfer. */
  accounts: (items, env) => {
    const accounts = items.flatMap(({ key }) => ledger.account(key) ?? [])
    return copyLedger(storeOf(env), [], accounts, ledger.newest)
  },
  /** The newest state of each deal, with its consequences for artifacts. */
  deals: deliverAll,
  listings: (items, env) =>
    writeListings(
      storeOf(env),
      items.map(({ value }) => value as ListingCopy),
    ),
})

/** A deal that fails does not delay the later ones. */
async function deliverAll(items: readonly Item[], env: Env): Promise<void> {
  const failed = new Map<string, unknown>()
  for (const { key, value } of items)
    await deliver(env, value as SentDeal, Date.now()).catch((error: unknown) => void failed.set(key, error))
  if (failed.size > 0) throw new SentInPart(new Set(failed.keys()), [...failed.values()][0])
}

/** State that is sent from the tables of the ledger. */
export const sourcesOf = (ledger: Ledger, outbox: () => Pick<Outbox, 'put'>): Readonly<Record<string, Source>> => ({
  /** Turns the history into messages for the scopes whose accounts took part. */
  news: {
    get waiting() {
      return ledger.mark('news') < ledger.newest
    },
    send: async () => newsOfTransfers(ledger, outbox()),
  },
  transfers: {
    get waiting() {
      return ledger.mark('copied') < ledger.newest
    },
    async send(env) {
      for (;;) {
        const { items } = ledger.history({ after: String(ledger.mark('copied')), limit: PAGE })
        const last = items.at(-1)
        if (!last) return
        const changed = new Set(items.flatMap(({ debit, credit }) => [debit, credit]))
        const accounts = [...changed].flatMap((id) => ledger.account(id) ?? [])
        await copyLedger(storeOf(env), items, accounts, ledger.newest)
        ledger.setMark('copied', last.seq)
      }
    },
  },
})
