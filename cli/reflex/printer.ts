import type { Page } from '../../src/contract/scope-api.ts'
import { gapsOf } from '../../src/contract/lists/packs.ts'
import { isTerminal, painter, type Terminal, type Paint } from '../lib/paint.ts'
import { count } from '../lib/text.ts'
import { safeJson, table, type Column } from './table.ts'

/** Results go to stdout, everything else to stderr. With `json`, stdout holds nothing but JSON. */
export type Printer = {
  json: boolean
  paint: Paint
  /** A result: a JSON document, or the lines for people. */
  result: (value: unknown, lines: (paint: Paint) => readonly string[]) => void
  page: <Item>(page: Page<Item>, columns: readonly Column<Item>[], empty: string) => void
  /** A result of many, as they come: a line of JSON, or a line for people. */
  item: (value: unknown, line: (paint: Paint) => string) => void
  /** Text as it is, for pipes and files. */
  raw: (text: string) => void
  note: (text: string) => void
}

type Outputs = { stdout: Terminal; stderr: Terminal }

export function printer(json: boolean, { stdout, stderr }: Outputs = process): Printer {
  const paint = painter(stdout)
  const write = (lines: readonly string[]) => void stdout.write(lines.map((line) => `${line}\n`).join(''))
  const note = (text: string) => void stderr.write(`${text}\n`)
  const width = isTerminal(stdout) ? (stdout.columns ?? 80) : undefined
  return {
    json,
    paint,
    note,
    raw: (text) => void stdout.write(text),
    result: (value, lines) => write(json ? [safeJson(value, 2)] : lines(paint)),
    item: (value, line) => write([json ? safeJson(value) : line(paint)]),
    page(page, columns, empty) {
      if (json) write([safeJson(page, 2)])
      else if (page.items.length === 0) note(empty)
      else write(table(page.items, columns, { width, paint }))
      if (!json) for (const gap of gapsOf(page)) note(gap)
      if (!json && page.next_cursor !== null) note(`The first ${count(page.items.length)}; --limit shows more.`)
    },
  }
}
