import { DurableObject } from 'cloudflare:workers'
import type { SpendingLimits } from './contract/account.ts'
import type { AccountKey, SoldGoods, LedgerApi, LedgerCaller, LicenceUse, PageAsked, Revocation } from './contract/ledger-api.ts'
import type { NewListing, NewOffer } from './contract/listing.ts'
import type { NewContract } from './contract/service.ts'
import type { NewMint, NewTransfer } from './contract/transfer.ts'
import type { Env } from '../../env.ts'
import { Market } from './market.ts'

/**
 * The accounts, transfers, listings, deals, licences and contracts of the deployment. One object
 * holds them, so that a payment and what is paid for are one transaction.
 */
export class LedgerObject extends DurableObject<Env> implements LedgerApi {
  readonly #market: Market

  constructor(context: DurableObjectState, env: Env) {
    super(context, env)
    this.#market = new Market(context, env)
  }

  override alarm(): Promise<void> {
    return this.#market.alarm()
  }

  async transfer(transfers: NewTransfer[], by: LedgerCaller) {
    return this.#market.act(({ ledger }, now) => ledger.transfer(transfers, { ...by, caller: by.name, privileged: false }, now))
  }

  async mint(mint: NewMint, by: LedgerCaller) {
    return this.#market.act(({ ledger }, now) => ledger.mint(mint, { ...by, caller: by.name }, now))
  }

  async account(id: string) {
    return this.#market.act(({ ledger }) => ledger.account(id))
  }

  async accounts(page: PageAsked) {
    return this.#market.act(({ ledger }) => ledger.accounts(page))
  }

  async statement(id: string, page: PageAsked) {
    return this.#market.act(({ ledger }) => ledger.statement(id, page))
  }

  async audit() {
    return this.#market.act(({ ledger }) => ledger.audit())
  }

  async size() {
    return this.ctx.storage.sql.databaseSize
  }

  async departedUpTo() {
    return this.#market.act(({ ledger }) => ledger.departedUpTo)
  }

  async setLimits(account: string, limits: SpendingLimits | null, revision: number) {
    this.#market.act(({ ledger }) => ledger.setLimits(account, limits, revision))
  }

  async closeAccount(id: string, owner: string | null) {
    this.#market.act(({ ledger }) => ledger.closeAccount(id, owner))
  }

  async accountsOfKeys(keys: AccountKey[]) {
    return this.#market.act(({ ledger }) => keys.map((key) => ledger.accountOfKey(key)))
  }

  async transfers(ids: string[]) {
    return this.#market.act(({ ledger }) => ledger.transfers(ids))
  }

  async list(asked: NewListing & { listing_id: string }, goods: SoldGoods, by: LedgerCaller) {
    return this.#market.act(({ deals }, now) => deals.list(asked, goods, by, now))
  }

  async unlist(listing_id: string, by: Parameters<LedgerApi['unlist']>[1]) {
    return this.#market.act(({ deals }, now) => deals.unlist(listing_id, by, now))
  }

  async listing(listing_id: string) {
    return this.#market.act(({ deals }) => deals.listing(listing_id))
  }

  async offer(listing_id: string, asked: NewOffer, by: LedgerCaller) {
    return this.#market.act(({ deals }, now) => deals.offer(listing_id, asked, by, now))
  }

  async decide(deal_id: string, decision: Parameters<LedgerApi['decide']>[1], by: Parameters<LedgerApi['decide']>[2]) {
    return this.#market.act(({ deals }, now) => deals.decide(deal_id, decision, by, now))
  }

  async deal(deal_id: string) {
    return this.#market.act(({ deals }) => deals.deal(deal_id))
  }

  async deals(of: { account: string } & PageAsked) {
    return this.#market.act(({ deals }) => deals.deals(of))
  }

  async deliverAgain(deal_ids: string[]) {
    this.#market.act(({ deals }, now) => deals.deliverAgain(deal_ids, now))
  }

  async payTrial(listing_id: string, of: { buyer: string; id: string }) {
    return this.#market.act(({ deals }, now) => deals.payTrial(listing_id, of, now))
  }

  async reportUse(uses: LicenceUse[]) {
    return this.#market.act(({ deals }, now) => deals.reportUse(uses, now))
  }

  async revoke(revocation: Revocation) {
    return this.#market.act(({ deals }, now) => deals.revoke(revocation, now))
  }

  async propose(asked: NewContract, by: LedgerCaller) {
    return this.#market.act(({ contracts }, now) => contracts.propose(asked, by, now))
  }

  async decideContract(id: string, decision: Parameters<LedgerApi['decideContract']>[1], by: Parameters<LedgerApi['decideContract']>[2]) {
    return this.#market.act(({ contracts }, now) => contracts.decide(id, decision, by, now))
  }

  async contract(id: string) {
    return this.#market.act(({ contracts }) => contracts.contract(id))
  }

  async contracts(of: { account: string } & PageAsked) {
    return this.#market.act(({ contracts }) => contracts.page(of))
  }

  async payInvocation(id: string, of: { caller: string; invocation_id: string }) {
    return this.#market.act(({ contracts }, now) => contracts.payInvocation(id, of, now))
  }

  async settleInvocation(id: string, of: Parameters<LedgerApi['settleInvocation']>[1]) {
    return this.#market.act(({ contracts }, now) => contracts.settleInvocation(id, of, now))
  }

  async view(scope: string) {
    return this.#market.act(({ views }) => views.view(scope))
  }
}
