import type { Ledger, TimedOut } from './ledger/ledger.ts'
import type { Limits } from './limits.ts'
import type { Env } from '../../env.ts'

/** Puts a message into the open transaction. */
export type MarketOutbox = { put: (topic: string, key: string, value: unknown) => void }
/** State that is sent from tables of its own, up to a mark that it keeps. */
export type MarketSource = { readonly waiting: boolean; send: (env: Env) => Promise<void> }

/** The parts of the object that its rooms use. */
export type MarketRoom = {
  sql: SqlStorage
  ledger: Ledger
  outbox: MarketOutbox
  limits: Limits
  /** A transaction within the object's transaction. An exception undoes this one alone. */
  separately: <Made>(work: () => Made) => Made
}

/** A part of the market with times of its own: it acts within the object's transactions. */
export interface Room {
  /** When something of it expires next, in ms. */
  readonly due: number | null
  /** Ends what expires at `at`, and follows the pending transfers that timed out then. */
  expire(at: number, timed_out: readonly TimedOut[]): void
  /** The ids among these of transfers that something unfinished of this room refers to. */
  inUse(ids: readonly string[]): string[]
}
