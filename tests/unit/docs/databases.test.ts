import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const page = readFileSync('docs/operating.md', 'utf8')
const MOST = 17
const DAY_S = 86_400

test('the table of databases follows from the bytes of an event that were measured, and the default window', () => {
  const measured = Number(
    /bytes in D1 for an event, the index by id and trace included \| (\d+) \|/.exec(readFileSync('docs/cost.md', 'utf8'))?.[1],
  )
  expect(page).toContain(`an ordinary event takes ${measured} bytes there`)
  const window = Number(/DEFAULT_BYTES = ([\d_]+)/.exec(readFileSync('src/events/retention.ts', 'utf8'))?.[1]?.replaceAll('_', ''))
  expect(page).toContain(`(${window / 1e9} GB of packed events in`)
  const [, head = '', rows = ''] = /\| events\/s \|(.+)\|\n.*\n((?:\|.*\|\n)+)/.exec(page) ?? []
  const days = Array.from(head.matchAll(/(\d+) days/g), ([, count]) => Number(count))
  const cells = rows
    .trim()
    .split('\n')
    .map((row) =>
      row
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )
  expect([days.length, cells.length]).toEqual([3, 6])
  for (const [rate, ...counts] of cells) {
    const needed = days.map((count) => Math.ceil((measured * Number(rate) * DAY_S * count) / window))
    expect(counts).toEqual(needed.map((count) => (count > MOST ? `more than ${MOST}` : String(count))))
  }
})
