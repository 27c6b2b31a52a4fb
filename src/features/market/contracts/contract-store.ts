import type { LedgerPage, PageAsked } from '../contract/ledger-api.ts'
import type { Contract } from '../contract/service.ts'

type Kept = { record: string }
/** `held`: the money is reserved until the call has ended. */
type Invocation = { contract_id: string; invocation_id: string; transfer: string; state: 'held' | 'served' | 'failed'; at: number }

/** The rows of contracts, and of the calls that were paid under them. */
export class ContractStore {
  readonly #sql: SqlStorage

  constructor(sql: SqlStorage) {
    this.#sql = sql
  }

  find(id: string): Contract | null {
    return this.#contracts('contract_id = ?', id)[0] ?? null
  }

  write(contract: Contract): void {
    const { contract_id, proposer, counterparty, status } = contract
    this.#sql.exec(
      `INSERT INTO contracts (contract_id, proposer, counterparty, status, record) VALUES (?1, ?2, ?3, ?4, ?5)
        ON CONFLICT (contract_id) DO UPDATE SET status = ?4, record = ?5`,
      contract_id,
      proposer,
      counterparty,
      status,
      JSON.stringify(contract),
    )
  }

  /** Number of contracts of the proposer that are open. */
  openOf(proposer: string): number {
    const sql = `SELECT count(*) AS n FROM contracts WHERE proposer = ? AND status IN ('proposed', 'accepted')`
    return this.#sql.exec<{ n: number }>(sql, proposer).one().n
  }

  /** Oldest first; `after` is a `seq`. */
  page(account: string, { after, limit }: PageAsked): LedgerPage<Contract> {
    const sql = `SELECT seq, record FROM contracts WHERE seq > ?1 AND (proposer = ?2 OR counterparty = ?2) ORDER BY seq LIMIT ?3`
    const rows = this.#sql.exec<Kept & { seq: number }>(sql, Number(after ?? 0), account, limit + 1).toArray()
    const items = rows.slice(0, limit)
    return {
      items: items.map(({ record }) => JSON.parse(record) as Contract),
      next: rows.length > limit ? String(items.at(-1)?.seq) : null,
    }
  }

  waitingFor(counterparty: string, limit: number): Contract[] {
    return this.#contracts(`counterparty = ? AND status = 'proposed' ORDER BY seq LIMIT ?`, counterparty, limit)
  }

  inForce(account: string, limit: number): Contract[] {
    const calls = this.#contracts(`proposer = ? AND status = 'accepted' ORDER BY seq LIMIT ?`, account, limit)
    const serves = this.#contracts(`counterparty = ? AND status = 'accepted' ORDER BY seq LIMIT ?`, account, limit)
    return [...calls, ...serves]
  }

  invocation(contract_id: string, invocation_id: string): Invocation | null {
    const sql = 'SELECT contract_id, invocation_id, transfer, state, at FROM invocations WHERE contract_id = ? AND invocation_id = ?'
    return this.#sql.exec<Invocation>(sql, contract_id, invocation_id).toArray()[0] ?? null
  }

  invocationOf(transfer: string): Invocation | null {
    const sql = 'SELECT contract_id, invocation_id, transfer, state, at FROM invocations WHERE transfer = ?'
    return this.#sql.exec<Invocation>(sql, transfer).toArray()[0] ?? null
  }

  begin({ contract_id, invocation_id, transfer, at }: Omit<Invocation, 'state'>): void {
    const sql = `INSERT INTO invocations (contract_id, invocation_id, transfer, state, at) VALUES (?, ?, ?, 'held', ?)`
    this.#sql.exec(sql, contract_id, invocation_id, transfer, at)
  }

  end({ transfer }: Pick<Invocation, 'transfer'>, state: 'served' | 'failed', trace_id: string | null): void {
    this.#sql.exec('UPDATE invocations SET state = ?2, trace_id = ?3 WHERE transfer = ?1', transfer, state, trace_id)
  }

  held(contract_id: string): number {
    const sql = `SELECT count(*) AS n FROM invocations WHERE contract_id = ? AND state = 'held'`
    return this.#sql.exec<{ n: number }>(sql, contract_id).one().n
  }

  /** The transfers among these of calls under contracts that are in force or disputed. */
  inUse(transfers: readonly string[]): string[] {
    const sql = `SELECT transfer FROM invocations JOIN contracts USING (contract_id)
      WHERE transfer IN (SELECT value FROM json_each(?)) AND status IN ('accepted', 'disputed')`
    return Array.from(this.#sql.exec<{ transfer: string }>(sql, JSON.stringify(transfers)), ({ transfer }) => transfer)
  }

  /** Traces of the newest calls, which have the entries of both sides. */
  traces(contract_id: string, limit: number): string[] {
    const sql = 'SELECT trace_id FROM invocations WHERE contract_id = ? AND trace_id IS NOT NULL ORDER BY seq DESC LIMIT ?'
    return this.#sql
      .exec<{ trace_id: string }>(sql, contract_id, limit)
      .toArray()
      .map(({ trace_id }) => trace_id)
  }

  #contracts(where: string, ...params: SqlStorageValue[]): Contract[] {
    const rows = this.#sql.exec<Kept>(`SELECT record FROM contracts WHERE ${where}`, ...params).toArray()
    return rows.map(({ record }) => JSON.parse(record) as Contract)
  }
}
