import { readFile, writeFile } from 'node:fs/promises'
import type { CostLine } from './measure.ts'

const PAGE = 'docs/cost.md'
/** The estimate of a scope's cost reads it. */
const FIGURES = 'src/features/statistics/http/measured.json'
const HEAD = '| an event that is | sent |'

/** Writes the figures of a run into the page on costs, and where the estimate reads them. */
export async function writeCosts(lines: readonly CostLine[]): Promise<void> {
  const dollars = lines.map(({ event, how: sent, dollars: cost }) => ({ event, sent, dollars: Number(cost.toFixed(1)) }))
  await writeFile(FIGURES, `${JSON.stringify(dollars, null, 2)}\n`)
  const page = (await readFile(PAGE, 'utf8')).split('\n')
  const start = page.findIndex((line) => line.startsWith(HEAD))
  if (start < 0) throw new Error(`${PAGE} has no table of what events cost`)
  const end = page.findIndex((line, index) => index > start && !line.startsWith('|'))
  page.splice(start + 2, end - start - 2, ...lines.map(rowOf))
  await writeFile(PAGE, page.join('\n'))
}

function rowOf({ event, how, per_event, dollars }: CostLine): string {
  const { scope_rows, alarms, d1_rows, scope_bytes, d1_bytes } = per_event
  const bytes = how === 'alone' ? ['', ''] : [scope_bytes.toFixed(0), d1_bytes.toFixed(0)]
  return `| ${[event, how, scope_rows.toFixed(1), alarms.toFixed(1), d1_rows.toFixed(1), ...bytes, dollars.toFixed(1)].join(' | ')} |`
}
