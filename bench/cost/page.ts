import { readFile, writeFile } from 'node:fs/promises'
import { number, type Line } from '../figure.ts'
import type { PeerLine } from '../peers.ts'
import type { ScaleLine } from '../scale/place.ts'
import type { CostLine } from './measure.ts'

const PAGE = 'docs/cost.md'
/** The estimate of a scope's cost reads it. */
const FIGURES = 'src/features/statistics/http/measured.json'

/** Writes the figures of a run into the page on costs, and where the estimate reads them. */
export async function writeCosts(lines: readonly CostLine[]): Promise<void> {
  const dollars = lines.map(({ event, how: sent, dollars: cost }) => ({ event, sent, dollars: Number(cost.toFixed(1)) }))
  await writeFile(FIGURES, `${JSON.stringify(dollars, null, 2)}\n`)
  await replaceRows('| an event that is | sent |', lines.map(rowOf))
}

/** Writes rates and latencies beside their bare loops, and the figures of peers, into the page. */
export async function writeFigures(lines: readonly Line[], peers: readonly PeerLine[]): Promise<void> {
  const rows = lines.map(({ name, what, unit, ours, bare, ratio, target, ok }) => {
    const values = [`${number(ours)} ${unit}`, bare === null ? '' : `${number(bare)} ${unit}`, ratio?.toFixed(2) ?? '']
    return `| \`${name}\`: ${what} | ${values.join(' | ')} | ${target}${ok ? '' : ', missed'} |`
  })
  await replaceNamed(
    '| figure | Reflex |',
    rows,
    lines.map(({ name }) => `| \`${name}\`: `),
  )
  const others = peers.map(({ name, figures: { throughput_eps, p50_ms, p99_ms } }) => {
    const values = [throughput_eps, p50_ms, p99_ms].map((value) => (value === undefined ? '' : number(value)))
    return `| ${[name, ...values].join(' | ')} |`
  })
  await replaceNamed(
    '| peer | events/s |',
    others,
    peers.map(({ name }) => `| ${name} |`),
  )
}

/** The rows of what was not measured stay. */
async function replaceNamed(head: string, rows: readonly string[], starts: readonly string[]): Promise<void> {
  if (rows.length > 0) await replaceRows(head, rows, (row) => starts.some((start) => row.startsWith(start)))
}

/** Writes what one measurement of what is large found, in place of its rows of before. */
export async function writeScale(name: string, lines: readonly ScaleLine[]): Promise<void> {
  const rows = lines.map(({ what, value, unit, target, ok }) => {
    const missed = ok === false ? ', missed' : ''
    return `| \`${name}\` | ${what} | ${number(value)} ${unit} | ${target}${missed} |`
  })
  await replaceRows('| bench | what', rows, (row) => row.startsWith(`| \`${name}\` |`))
}

async function replaceRows(head: string, rows: readonly string[], isReplaced?: (row: string) => boolean): Promise<void> {
  await writeFile(PAGE, withRows(await readFile(PAGE, 'utf8'), { head, rows, isReplaced }))
}

type Table = { head: string; rows: readonly string[]; isReplaced?: ((row: string) => boolean) | undefined }

/** The page with these rows in place of those that are replaced in the table with this head. */
export function withRows(page: string, { head, rows, isReplaced = () => true }: Table): string {
  const lines = page.split('\n')
  const start = lines.findIndex((line) => line.startsWith(head))
  if (start < 0) throw new Error(`${PAGE} has no table that begins with ${head}`)
  const end = lines.findIndex((line, index) => index > start && !line.startsWith('|'))
  const kept = lines.slice(start + 2, end).filter((row) => !isReplaced(row))
  return lines.toSpliced(start + 2, end - start - 2, ...kept, ...rows).join('\n')
}

function rowOf({ event, how, per_event, dollars }: CostLine): string {
  const { scope_rows, alarms, d1_rows, scope_bytes, d1_bytes } = per_event
  const bytes = how === 'alone' ? ['', ''] : [scope_bytes.toFixed(0), d1_bytes.toFixed(0)]
  return `| ${[event, how, scope_rows.toFixed(1), alarms.toFixed(1), d1_rows.toFixed(1), ...bytes, dollars.toFixed(1)].join(' | ')} |`
}
