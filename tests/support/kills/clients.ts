import { expect } from 'vitest'
import type { LedgerAudit } from '../../../src/features/market/contract/account.ts'
import { ADMIN_KEY, type KillableServer } from './server.ts'
import type { Answered, Operation, Traffic } from './traffic.ts'

type Answer = { status: number; answer: unknown }

/** An HTTP client of a server that may die: null if there is no answer. */
export async function ask(
  server: KillableServer,
  { method, path, body, key = ADMIN_KEY }: Omit<Operation, 'kind'>,
): Promise<Answer | null> {
  try {
    const response = await fetch(`${server.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const answer: unknown = await response.json()
    return response.status >= 500 ? null : { status: response.status, answer }
  } catch {
    return null
  }
}

export async function read<Body>(server: KillableServer, path: string): Promise<Body> {
  const found = await ask(server, { method: 'GET', path })
  if (found?.status !== 200) throw new Error(`${path} was answered ${JSON.stringify(found)}`)
  return found.answer as Body
}

type Seen = Pick<LedgerAudit, 'minted' | 'transfers'>

/** It adds up, and has lost nothing since the last audit. */
function checkAudit(audit: LedgerAudit, seen: Seen): void {
  expect(audit).toMatchObject({ ok: true, problems: [] })
  expect(audit.debits).toBe(audit.credits)
  expect(audit.minted).toBeGreaterThanOrEqual(seen.minted)
  expect(audit.transfers).toBeGreaterThanOrEqual(seen.transfers)
}

/** Clients that repeat each operation until it is answered, and an auditor beside them. */
export class Clients {
  readonly answered: Answered[] = []
  audits = 0
  /** Operations that a kill left without an answer. */
  interrupted = 0
  readonly #server: KillableServer
  readonly #traffic: Traffic
  readonly #waiting: Operation[] = []
  #seen: Seen = { minted: 0, transfers: 0 }

  constructor(server: KillableServer, traffic: Traffic) {
    this.#server = server
    this.#traffic = traffic
  }

  /** Sends until `isOver`, or until the server does not answer. What was not answered waits. */
  async life(isOver: () => boolean, count: number): Promise<void> {
    const life = { running: count }
    const client = async () => {
      while (!isOver() && (await this.#send())) continue
      life.running -= 1
    }
    const audits = async () => {
      while (life.running > 0 && (await this.audit())) continue
    }
    await Promise.all([audits(), ...Array.from({ length: count }, client)])
  }

  /** Sends again what was not answered. */
  async settle(): Promise<void> {
    while (this.#waiting.length > 0) if (!(await this.#send())) throw new Error('the server does not answer')
  }

  async audit(): Promise<boolean> {
    const found = await ask(this.#server, { method: 'GET', path: '/v1/ledger/audit' })
    if (!found) return false
    const audit = found.answer as LedgerAudit
    checkAudit(audit, this.#seen)
    this.#seen = audit
    this.audits += 1
    return true
  }

  async #send(): Promise<boolean> {
    const operation = this.#waiting.shift() ?? this.#traffic.next()
    const found = await ask(this.#server, operation)
    if (!found) {
      this.#waiting.push(operation)
      this.interrupted += 1
      return false
    }
    const answered = { ...operation, ...found }
    this.answered.push(answered)
    this.#traffic.note(answered)
    return true
  }
}
