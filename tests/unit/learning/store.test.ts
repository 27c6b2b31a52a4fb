import { expect, test } from 'vitest'
import type { Episode } from '../../../src/features/learning/episode.ts'
import { LearnerStore } from '../../../src/features/learning/run/store.ts'
import { ObjectSql } from '../../support/object-sql.ts'

test('a learner keeps 24 MB of episodes, counted in bytes and not in letters', () => {
  const sql = new ObjectSql()
  // The tables are laid within the first transaction.
  let depth = 0
  const transactionSync = <Made>(work: () => Made): Made => {
    depth += 1
    try {
      return depth > 1 ? sql.savepoint(work) : sql.transaction(work)
    } finally {
      depth -= 1
    }
  }
  const storage = { sql: sql.storage, transactionSync }
  const store = new LearnerStore(storage as DurableObjectStorage)
  const content = 'é'.repeat(1_000_000)
  const episodes = Array.from({ length: 14 }, (_, at) => ({ id: `e${at}`, log_seq: at, at, content }) as unknown as Episode)
  store.unit(() => store.add(episodes))
  store.trim(100)
  expect(store.newest(100).map(({ id }) => id)).toEqual(['e3', 'e4', 'e5', 'e6', 'e7', 'e8', 'e9', 'e10', 'e11', 'e12', 'e13'])
})
