import { expect, test } from 'vitest'
import { Records } from '../../../src/engine/reflexes/stats.ts'
import type { AuditPace } from '../../../src/contract/reports/reflex-report.ts'

test('the record of a version, which is written with each of its acts, has counts of values of its last kinds alone', () => {
  const database = { all: () => [], read: (_key: string, otherwise: unknown) => otherwise }
  const records = new Records(database as never, { noted: new Map(), notes: () => {} })
  const version = { id: 'r', version: 1, state: 'active' }
  const pace: AuditPace = { proof: 1, acts: 3, unaudited: 2, values: { a: 1 } }
  for (let kind = 0; kind < 12; kind += 1) records.paced(version, `kind-${kind}`, pace)
  const [[, written]] = records.note() as [[string, { paces: Record<string, AuditPace> }]]
  const named = Object.entries(written.paces)
  expect(named.map(([, { acts }]) => acts)).toEqual(named.map(() => 3))
  expect(named).toHaveLength(12)
  expect(named.flatMap(([kind, { values }]) => (values ? [kind] : []))).toEqual([4, 5, 6, 7, 8, 9, 10, 11].map((kind) => `kind-${kind}`))
})
