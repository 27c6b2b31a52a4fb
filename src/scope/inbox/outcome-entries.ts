import type { Outcome } from '../../contract/event-record.ts'
import type { NewEntry } from '../../contract/log-entry.ts'
import type { End, Failed, Settled } from './inbox.ts'
import { eventHead } from '../spans.ts'

export const endedEntries = (rows: readonly Settled[], { status, outcome, error = null }: End): NewEntry[] =>
  rows.map((row) => ({ ...eventHead(row), kind: 'event-ended', status, attempts: row.attempts, outcome, error }))

/** Log entries for failed events, retried or dead-lettered. */
export const failedEntries = (rows: readonly Failed[], outcome: Extract<Outcome, { by: 'failure' }>): NewEntry[] =>
  rows.map((row) => {
    const { reason: error } = outcome
    const { attempts } = row
    return row.status === 'pending'
      ? { ...eventHead(row), kind: 'event-retried', attempts, error, due_at: new Date(row.due_at).toISOString() }
      : { ...eventHead(row), kind: 'event-ended', status: 'dead_lettered', attempts, outcome, error }
  })
