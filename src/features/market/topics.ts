import { messageOf } from '../../base/error-text.ts'
import type { GivenUp, Topic } from '../../kernel/outbox.ts'
import type { Env } from '../../env.ts'
import type { Ledger } from './ledger/ledger.ts'
import { addDeadLetters, type DeadLetterRow } from '../../store/dead-letters.ts'
import { copiedUpTo, copyTransfers } from './store/ledger.ts'
import { writeListings, type ListingCopy } from './store/listings.ts'
import { storeOf } from '../../store/store.ts'
import type { MarketView } from './contract/view.ts'
import { DEAL_TOPICS, type SentDeal } from './deals/notify.ts'
import { deliver } from './goods/deliver.ts'
import { LIMITS } from './limits.ts'
import { SCOPE_NEWS, newsOfTransfers, sendNews } from './news.ts'
import type { MarketOutbox, MarketSource } from './room.ts'

const PAGE = 500
const DEAD_LETTERS = 'dead-letters'

type Sending = { env: Env; view: (scope: string) => MarketView; outbox: MarketOutbox }

/** The functions that send the topics of the outbox. Each is idempotent. */
export const topicsOf = ({ env, view, outbox }: Sending): Record<string, Topic> => ({
  [SCOPE_NEWS]: { send: (items) => sendNews(items, env, view), in_order: true, most_waiting: LIMITS.news },
  /** The newest state of each deal, with its consequences for artifacts. */
  [DEAL_TOPICS.deals]: {
    async send(items) {
      for (const { value } of items) await deliver(env, value as SentDeal, Date.now())
    },
    giveUp: (message) => outbox.put(DEAD_LETTERS, message.key, letterOf(message)),
  },
  [DEAL_TOPICS.listings]: {
    send: (items) =>
      writeListings(
        storeOf(env),
        items.map(({ value }) => value as ListingCopy),
      ),
  },
  [DEAD_LETTERS]: {
    send: (items) =>
      addDeadLetters(
        storeOf(env),
        items.map(({ value }) => value as DeadLetterRow),
      ),
  },
})

/** For a person, who retries it once its cause is removed. Keys that cover all scopes see it. */
const letterOf = ({ key, value, error, attempts }: GivenUp): DeadLetterRow => ({
  id: `deal:${key}`,
  origin: 'market',
  scope: null,
  event_id: null,
  type: 'deal',
  error: messageOf(error),
  stack: null,
  attempts,
  payload: JSON.stringify((value as SentDeal).deal),
  dead_lettered_at: Date.now(),
})

/** State that is sent from the tables of the ledger. */
export const sourcesOf = (ledger: Ledger, outbox: MarketOutbox): Record<string, MarketSource> => ({
  /** Turns the history into messages for the scopes whose accounts took part. */
  news: {
    get waiting() {
      return ledger.mark('news') < ledger.newest
    },
    send: async () => newsOfTransfers(ledger, outbox),
  },
  transfers: {
    get waiting() {
      return ledger.mark('copied') < ledger.newest
    },
    /** From what D1 has, if it was restored to an earlier time: the copy has no gap. */
    async send(env) {
      const db = storeOf(env)
      for (let after = Math.min(ledger.mark('copied'), await copiedUpTo(db)); ;) {
        const { items } = ledger.history({ after: String(after), limit: PAGE })
        const last = items.at(-1)
        if (!last) return
        await copyTransfers(db, items)
        after = last.seq
        ledger.setMark('copied', after)
      }
    },
  },
})
