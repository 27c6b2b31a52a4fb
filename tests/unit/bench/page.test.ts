import { expect, test } from 'vitest'
import { withRows } from '../../../bench/cost/page.ts'

const page = ['# Costs', '', '| figure | Reflex |', '| --- | --- |', '| `queue`: rate | 1 |', '| `socket`: ack | 2 |', '', 'More.'].join(
  '\n',
)
const head = '| figure |'

test('a run that measures some figures keeps the rows of the others', () => {
  const isReplaced = (row: string) => row.startsWith('| `socket`: ')
  const rows = withRows(page, { head, rows: ['| `socket`: ack | 3 |'], isReplaced })
    .split('\n')
    .slice(4)
  expect(rows).toEqual(['| `queue`: rate | 1 |', '| `socket`: ack | 3 |', '', 'More.'])
})

test('a run that measures a whole table replaces all its rows', () => {
  expect(
    withRows(page, { head, rows: ['| `turn` | 4 |'] })
      .split('\n')
      .slice(4),
  ).toEqual(['| `turn` | 4 |', '', 'More.'])
})

test('a page without the table is refused, and its name is said', () => {
  expect(() => withRows(page, { head: '| peer |', rows: [] })).toThrow('docs/cost.md has no table that begins with | peer |')
})
