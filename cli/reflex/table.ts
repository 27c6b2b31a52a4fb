import type { Cell, Column } from '../../src/contract/shown.ts'
import { plainPaint, type Paint } from '../lib/paint.ts'
import { cut, harmless } from '../lib/text.ts'

export type { Column }

type Look = { width?: number | undefined; paint?: Paint }

/** Lines with a heading. The last column is truncated to the width; the others keep theirs. */
export function table<Item>(items: readonly Item[], columns: readonly Column<Item>[], { width, paint = plainPaint }: Look = {}): string[] {
  const rows = items.map((item) => columns.map(({ of }) => written(of(item))))
  const titles = columns.map(({ title }) => title.toUpperCase())
  const widths = titles.map((title, at) => Math.max(title.length, ...rows.map((row) => row[at]?.length ?? 0)))
  const before = widths.slice(0, -1).reduce((sum, width) => sum + width + 2, 0)
  const fit = (text: string, at: number) => {
    if (at < columns.length - 1) return text.padEnd(widths[at] ?? 0)
    return width === undefined ? text : cut(text, Math.max(10, width - before))
  }
  const heading = paint('dim', titles.map(fit).join('  '))
  const lines = rows.map((row, place) =>
    row
      .map((text, at) => {
        const item = items[place]
        const colour = item === undefined ? null : (columns[at]?.colour?.(item) ?? null)
        return colour === null ? fit(text, at) : paint(colour, fit(text, at))
      })
      .join('  ')
      .trimEnd(),
  )
  return [heading.trimEnd(), ...lines]
}

/** A name and a value a line. Fields that are undefined are left out. */
export function fields(values: Record<string, Cell>, paint: Paint = plainPaint): string[] {
  const shown = Object.entries(values).filter(([, value]) => value !== undefined)
  const width = Math.max(0, ...shown.map(([name]) => name.length))
  return shown.map(([name, value]) => `${paint('dim', name.padEnd(width))}  ${written(value)}`)
}

export function written(value: Cell): string {
  if (value === null || value === undefined || value === '') return '-'
  return typeof value === 'object' ? safeJson(value) : harmless(String(value))
}

/** A text of several lines, each of which can be printed. */
export const linesOf = (text: string): string[] => text.split(/\r?\n/).map((line) => harmless(line.replaceAll('\t', '    ')))

/** JSON whose strings cannot steer a terminal. It parses to the same value. */
export const safeJson = (value: unknown, indent?: number): string => escaped(JSON.stringify(value, null, indent))

export const escaped = (json: string): string =>
  json.replaceAll(
    // oxlint-disable-next-line no-control-regex -- control characters are what is looked for
    /[\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (character) => String.raw`\u` + (character.codePointAt(0) ?? 0).toString(16).padStart(4, '0'),
  )
