import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { metrics } from '../../../src/features/statistics/http/statistics-metrics.ts'

test('the page of statistics has a row for each metric, as the API describes it', () => {
  const rows = readFileSync('docs/stats.md', 'utf8').match(/^\| `[^|]+` \| (?:count|usd|ms|share|time) \| .+ \|$/gm)
  expect(rows).toEqual(Object.entries(metrics).map(([name, { unit, description }]) => `| \`${name}\` | ${unit} | ${description} |`))
})
