import type { Figure } from './figure.ts'
import { median, type Samples } from './samples.ts'

export type Line = {
  name: string
  what: string
  unit: string
  ours: number
  bare: number | null
  ratio: number | null
  target: string
  ok: boolean
  samples: Samples
}

/** The ratio is the median of the pairs' own ratios: what slows the machine slows both of a pair. */
export function lineOf({ name, what, unit, target }: Figure, samples: Samples): Line {
  const pairs = samples.ours.flatMap((ours, index) => ours / (samples.bare[index] ?? Number.NaN))
  const bare = samples.bare.length > 0 ? median(samples.bare) : null
  const ratio = bare === null ? null : median(pairs)
  const ours = median(samples.ours)
  const reached = ratio ?? ours
  const ok = 'at_least' in target ? reached >= target.at_least : reached <= target.at_most
  const text = ('at_least' in target ? `≥ ${target.at_least}` : `≤ ${target.at_most}`) + (ratio === null ? ` ${unit}` : '')
  return { name, what, unit, ours, bare, ratio, target: text, ok, samples }
}

export function table(lines: readonly Line[]): string {
  const rows = lines.map(({ name, what, unit, ours, bare, ratio, target, ok }) => [
    `${name}: ${what}`,
    `${number(ours)} ${unit}`,
    bare === null ? '' : `${number(bare)} ${unit}`,
    ratio === null ? '' : ratio.toFixed(2),
    target,
    ok ? 'ok' : 'missed',
  ])
  const all = [['what', 'ours', 'bare', 'ratio', 'target', ''], ...rows]
  const widths = all.reduce<number[]>((widest, row) => row.map((cell, index) => Math.max(widest[index] ?? 0, cell.length)), [])
  return all
    .map((row) => row.map((cell, index) => (index === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[index] ?? 0))).join('  '))
    .join('\n')
}

const number = (value: number): string => (value >= 100 ? String(Math.round(value)) : value.toFixed(2))
